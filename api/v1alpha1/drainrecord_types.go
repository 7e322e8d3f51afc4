package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of a lock (skip-drain-on-upgrade).
const (
	// MaxLockBytes is how long a lock of a budget may be. A longer one is not read, as if it
	// were no JSON.
	MaxLockBytes = 32 << 10
)

// DrainRecord is what the drain of a node has locked, or is about to: it is
// written before the first lock and ends with the last one, so that whoever comes
// after a crash knows what to go on with. It is named after the node
// (skip-drain-on-upgrade). Ebbtide writes it; it is for people to read.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=drec
// +kubebuilder:printcolumn:name="Maintenance",type=string,JSONPath=`.spec.maintenanceRef.name`
// +kubebuilder:printcolumn:name="Locked",type=string,JSONPath=`.status.conditions[?(@.type=="Locked")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Locked")].reason`
// +kubebuilder:printcolumn:name="Ahead",type=integer,JSONPath=`.status.nodesAheadCount`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Locked")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DrainRecord struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is that of the node.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the drain needs. It is written by the NodeMaintenance controller.
	// +required
	Spec DrainRecordSpec `json:"spec"`
	// status is what the drain has got. It is written by the drain lock controller.
	// +optional
	Status DrainRecordStatus `json:"status,omitempty"`
}

// DrainRecordList is a list of DrainRecords.
//
// +kubebuilder:object:root=true
type DrainRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DrainRecord `json:"items"`
}

// DrainRecordSpec is what the drain of a node needs.
type DrainRecordSpec struct {
	// maintenanceRef is the maintenance in whose name the locks are taken: the
	// oldest one in place of the node.
	// +required
	MaintenanceRef MaintenanceReference `json:"maintenanceRef"`

	// inPlace are the settings of that maintenance.
	// +required
	InPlace InPlace `json:"inPlace"`

	// reason is that of the maintenance; the locks show it. At most 1,024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// pods are those that stay on the node, by namespace and name; at most 512.
	// Beyond that those without budgets are left out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Pods []StayingPod `json:"pods,omitempty"`

	// budgets are the PodDisruptionBudgets to be locked, in the order of
	// namespace and name in which locks are taken; at most 256.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Budgets []BudgetReference `json:"budgets,omitempty"`

	// emptying is true while pods have to leave the node: nothing more is locked, and the
	// node is not promised that it may go down.
	// +optional
	Emptying bool `json:"emptying,omitempty"`

	// complete is true if the maintenance is over: each lock goes when the pods
	// that stayed under it are ready again or gone.
	// +optional
	Complete bool `json:"complete,omitempty"`
}

// MaintenanceReference names a NodeMaintenance.
type MaintenanceReference struct {
	// name of the maintenance.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// uid of the maintenance; another one of the same name is another.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid,omitempty"`
}

// StayingPod is a pod that stays on its node.
type StayingPod struct {
	// namespace of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the pod.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
	// budgetUIDs are those of the PodDisruptionBudgets that protect it, in the order
	// of their names; at most 16. A pod under more does not stay.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Type=string
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	BudgetUIDs []types.UID `json:"budgetUIDs,omitempty"`
}

// BudgetReference names a PodDisruptionBudget. Another one of the same name is
// another, and its lock and what was given up of it are no matter of this one.
type BudgetReference struct {
	// namespace of the budget.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the budget.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the budget.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid,omitempty"`
}

// DrainRecordStatus is what the drain of a node has got.
type DrainRecordStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// waitStartTime is since when locks are missing; absent while none is.
	// +optional
	WaitStartTime *metav1.Time `json:"waitStartTime,omitempty"`

	// timeoutStartTime is since when inPlace.lockTimeoutSeconds counts; absent while
	// nothing but the locks of other drains is in the way, whose turn it is.
	// +optional
	TimeoutStartTime *metav1.Time `json:"timeoutStartTime,omitempty"`

	// nodesAheadCount is how many nodes wait for longer for some of the same locks. It is
	// rounded up to tens past 10 and is never more than 100; 0 if the node is next, or
	// does not wait.
	// +optional
	NodesAheadCount int32 `json:"nodesAheadCount,omitempty"`

	// yieldStartTime is since when the node could have its locks and lets others go
	// first that wait for longer, for a minute at the most; absent while it does not.
	// +optional
	YieldStartTime *metav1.Time `json:"yieldStartTime,omitempty"`

	// locks are those that were taken, in the order of spec.budgets; at most 512:
	// those that are needed, and those that are about to go.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Locks []RecordedLock `json:"locks,omitempty"`

	// givenUp are the budgets that could not be locked in time; at most 256.
	// Their pods do not stay.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	GivenUp []GivenUpBudget `json:"givenUp,omitempty"`

	// boots are the reboots of the node since it was promised that it may go; absent
	// before.
	// +optional
	Boots *RecordedBoots `json:"boots,omitempty"`

	// completeTime is when the maintenance was first seen to be complete; absent while
	// it goes on.
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`

	// conditions are Locked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RecordedLock is the lock of a budget that the drain has taken.
type RecordedLock struct {
	BudgetReference `json:",inline"`
	// acquiredTime is when it was taken.
	// +required
	AcquiredTime metav1.Time `json:"acquiredTime"`
	// confirmedTime is when the budget was seen to allow the pods that stay to go
	// down, after every eviction that may have begun before the lock; absent until
	// then.
	// +optional
	ConfirmedTime *metav1.Time `json:"confirmedTime,omitempty"`
}

// RecordedBoots tells what a node and its pods show since the reboot from what they
// have shown before: a reboot may be over before anybody has noticed that the node
// was away.
type RecordedBoots struct {
	// maintenanceUID is that of the maintenance to which these reboots belong.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	MaintenanceUID types.UID `json:"maintenanceUID"`
	// bootID is the boot that the Node has last reported. At most 128 characters; empty
	// if it reports none.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BootID string `json:"bootID,omitempty"`
	// bootTime is when that boot was first seen; absent while it is the one in which the
	// locks were confirmed.
	// +optional
	BootTime *metav1.Time `json:"bootTime,omitempty"`
	// rebootCount is how many other boots it has reported since all locks were confirmed;
	// 10 at the most.
	// +optional
	RebootCount int32 `json:"rebootCount,omitempty"`
	// returnedTime is when the node was back, so that its locks are free for others;
	// absent before.
	// +optional
	ReturnedTime *metav1.Time `json:"returnedTime,omitempty"`
	// withdrawnTime is since when the promise does not stand, because a budget does not
	// allow the pods that stay to go down any more, or another one is to be locked; absent
	// while it stands. The node may be on its way all the same.
	// +optional
	WithdrawnTime *metav1.Time `json:"withdrawnTime,omitempty"`
	// revokedTime is when the node was Ready, without a reboot, for so long after that that
	// it is not taken to go down by this promise any more; absent before.
	// +optional
	RevokedTime *metav1.Time `json:"revokedTime,omitempty"`
	// pods are those that stay, in the order of spec.pods; at most 512.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Pods []RecordedPod `json:"pods,omitempty"`
}

// RecordedPod is what has run in a pod that stays.
type RecordedPod struct {
	// uid of the pod.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
	// containers is a hash of the containers that were last seen to run in it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Containers string `json:"containers,omitempty"`
	// fresh is true if they were started since the last boot, so that the pod is
	// believed to be ready if it says so.
	// +optional
	Fresh bool `json:"fresh,omitempty"`
}

// GivenUpBudget is a budget that could not be locked in time.
type GivenUpBudget struct {
	BudgetReference `json:",inline"`
	// action is what is done about its pods: Evict or Delete.
	// +required
	Action LockTimeoutAction `json:"action"`
	// givenUpTime is when it was given up.
	// +required
	GivenUpTime metav1.Time `json:"givenUpTime"`
	// message says what was in the way. At most 1,024 characters.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
	// locked is true if somebody's lock was in the way: when that is gone before the
	// pods have left, they stay after all.
	// +optional
	Locked bool `json:"locked,omitempty"`
	// podUIDs are those of the pods that stayed under it until then; at most 512.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:Type=string
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	PodUIDs []types.UID `json:"podUIDs,omitempty"`
}
