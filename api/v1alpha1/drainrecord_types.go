package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

	// pods are those that stay on the node, by namespace and name; at most 4,096.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Pods []StayingPod `json:"pods,omitempty"`

	// budgets are the PodDisruptionBudgets to be locked, in the order of
	// namespace and name in which locks are taken; at most 4,096.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Budgets []BudgetReference `json:"budgets,omitempty"`

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
	// budgetNames are those of the PodDisruptionBudgets of its namespace that
	// protect it, in order; at most 256.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	BudgetNames []string `json:"budgetNames,omitempty"`
}

// BudgetReference names a PodDisruptionBudget.
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
}

// DrainRecordStatus is what the drain of a node has got.
type DrainRecordStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// waitStartTime is since when locks are missing; absent while none is.
	// +optional
	WaitStartTime *metav1.Time `json:"waitStartTime,omitempty"`

	// locks are those that were taken, in the order of spec.budgets; at most 4,096.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Locks []RecordedLock `json:"locks,omitempty"`

	// givenUp are the budgets that could not be locked in time; at most 4,096.
	// Their pods do not stay.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	GivenUp []GivenUpBudget `json:"givenUp,omitempty"`

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

// GivenUpBudget is a budget that could not be locked in time.
type GivenUpBudget struct {
	BudgetReference `json:",inline"`
	// action is what is done about its pods: Evict or Delete.
	// +required
	Action LockTimeoutAction `json:"action"`
	// givenUpTime is when it was given up.
	// +required
	GivenUpTime metav1.Time `json:"givenUpTime"`
	// message says what was in the way. At most 32,768 characters.
	// +required
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`
	// pods are those that stayed under it until then; at most 4,096.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Pods []StayingPod `json:"pods,omitempty"`
}
