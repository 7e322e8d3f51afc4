package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of a lock (skip-drain-on-upgrade).
const (
	// MaxLockBytes is the maximum length of a budget's lock. A longer one counts as unreadable.
	MaxLockBytes = 32 << 10
)

// DrainRecord tracks the locks of budgets for the drain of one node, so that they survive restarts
// of the manager. It is named after the node, is written before the first lock, and is deleted
// after the last one (skip-drain-on-upgrade). Only Ebbtide writes it.
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

	// spec lists the locks that the drain needs. The NodeMaintenance controller writes it.
	// +required
	Spec DrainRecordSpec `json:"spec"`
	// status lists the locks that the drain holds. The drain lock controller writes it.
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

// DrainRecordSpec lists the locks that the drain of a node needs.
type DrainRecordSpec struct {
	// maintenanceRef is the oldest maintenance in place of the node, on whose behalf the locks are
	// taken.
	// +required
	MaintenanceRef MaintenanceReference `json:"maintenanceRef"`

	// inPlace are the settings of that maintenance.
	// +required
	InPlace InPlace `json:"inPlace"`

	// reason is the reason of the maintenance, shown in the locks. At most 1,024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// pods are the pods that stay on the node, by namespace and name. At most 512; pods without
	// budgets are omitted first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Pods []StayingPod `json:"pods,omitempty"`

	// budgets are the PodDisruptionBudgets to lock, by namespace and name, which is the order of
	// locking. At most 256.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Budgets []BudgetReference `json:"budgets,omitempty"`

	// emptying is true while pods have to leave the node: no more locks are taken, and the node
	// may not go down.
	// +optional
	Emptying bool `json:"emptying,omitempty"`

	// complete is true if the maintenance is over. Each lock is released when its pods are ready
	// again or gone.
	// +optional
	Complete bool `json:"complete,omitempty"`
}

// MaintenanceReference names a NodeMaintenance.
type MaintenanceReference struct {
	// name of the NodeMaintenance.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// uid of the NodeMaintenance.
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
	// budgetUIDs are the UIDs of the budgets that protect the pod, in the order of their names. At
	// most 16; a pod with more does not stay.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Type=string
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	BudgetUIDs []types.UID `json:"budgetUIDs,omitempty"`
}

// BudgetReference names a PodDisruptionBudget. A later one with the same name is not meant.
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

// DrainRecordStatus lists the locks that the drain of a node holds.
type DrainRecordStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// waitStartTime is the time since which locks are missing. Unset if none is.
	// +optional
	WaitStartTime *metav1.Time `json:"waitStartTime,omitempty"`

	// timeoutStartTime is the time when lockTimeoutSeconds started counting. Unset while the
	// node only waits for other drains.
	// +optional
	TimeoutStartTime *metav1.Time `json:"timeoutStartTime,omitempty"`

	// nodesAheadCount is the number of nodes that have waited longer for some of the same locks.
	// It is rounded up to tens above 10, and at most 100.
	// +optional
	NodesAheadCount int32 `json:"nodesAheadCount,omitempty"`

	// yieldStartTime is the time since which the node lets others go first that have waited
	// longer, for at most a minute. Unset otherwise.
	// +optional
	YieldStartTime *metav1.Time `json:"yieldStartTime,omitempty"`

	// locks are the locks that the drain holds, in the order of spec.budgets, including those
	// about to be released. At most 512.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Locks []RecordedLock `json:"locks,omitempty"`

	// givenUp are the budgets that could not be locked in time. Their pods do not stay. At most
	// 256.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	GivenUp []GivenUpBudget `json:"givenUp,omitempty"`

	// boots describes the reboots since the node was allowed to go down. Unset before.
	// +optional
	Boots *RecordedBoots `json:"boots,omitempty"`

	// completeTime is the time when the maintenance was first seen complete. Unset before.
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`

	// conditions are Locked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RecordedLock is the lock of a budget that the drain holds.
type RecordedLock struct {
	BudgetReference `json:",inline"`
	// acquiredTime is the time when the lock was taken.
	// +required
	AcquiredTime metav1.Time `json:"acquiredTime"`
	// confirmedTime is the time when the budget was seen to allow its pods to go down, after
	// every eviction that started before the lock. Unset before.
	// +optional
	ConfirmedTime *metav1.Time `json:"confirmedTime,omitempty"`
}

// RecordedBoots distinguishes what a node and its pods report since the reboot from earlier
// reports. A reboot can be over before the manager notices it.
type RecordedBoots struct {
	// maintenanceUID is the UID of the maintenance that the reboots belong to.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	MaintenanceUID types.UID `json:"maintenanceUID"`
	// bootID is the boot ID that the Node last reported. At most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BootID string `json:"bootID,omitempty"`
	// bootTime is the time when that boot was first seen. Unset for the one that
	// confirmed the locks.
	// +optional
	BootTime *metav1.Time `json:"bootTime,omitempty"`
	// rebootCount is the number of boots reported since all locks were confirmed, at most 10.
	// +optional
	RebootCount int32 `json:"rebootCount,omitempty"`
	// returnedTime is the time when the node was back and its locks became free. Unset before.
	// +optional
	ReturnedTime *metav1.Time `json:"returnedTime,omitempty"`
	// withdrawnTime is the time since which the node may no longer go down, because a budget does
	// not allow it any more or another one has to be locked. Unset otherwise. The node may be
	// going down nevertheless.
	// +optional
	WithdrawnTime *metav1.Time `json:"withdrawnTime,omitempty"`
	// revokedTime is the time when the node had been Ready without a reboot for so long after
	// withdrawnTime that it is no longer expected to go down. Unset before.
	// +optional
	RevokedTime *metav1.Time `json:"revokedTime,omitempty"`
	// pods are the pods that stay, in the order of spec.pods. At most 512.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Pods []RecordedPod `json:"pods,omitempty"`
}

// RecordedPod describes the containers of a pod that stays.
type RecordedPod struct {
	// uid of the pod.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
	// containers is a hash of the containers that were last seen running.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Containers string `json:"containers,omitempty"`
	// fresh is true if they started after the last boot, so that the pod's readiness counts.
	// +optional
	Fresh bool `json:"fresh,omitempty"`
}

// GivenUpBudget is a budget that could not be locked in time.
type GivenUpBudget struct {
	BudgetReference `json:",inline"`
	// action is the action on its pods: Evict or Delete.
	// +required
	Action LockTimeoutAction `json:"action"`
	// givenUpTime is the time when it was given up.
	// +required
	GivenUpTime metav1.Time `json:"givenUpTime"`
	// message describes what prevented the lock. At most 1,024 characters.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
	// locked is true if another lock prevented it. If that lock ends before the pods have left,
	// they stay.
	// +optional
	Locked bool `json:"locked,omitempty"`
	// podUIDs are the UIDs of its pods that stayed until then. At most 512.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:Type=string
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	PodUIDs []types.UID `json:"podUIDs,omitempty"`
}
