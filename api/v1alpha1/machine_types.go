package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Defaults of a Machine.
const (
	// DefaultNodeDeletionTimeoutSeconds is for how long the deletion of a Node is
	// tried: a cloud controller manager usually deletes it, too.
	DefaultNodeDeletionTimeoutSeconds = 10
)

// MachinePhase is how far a Machine has come, for people.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;Provisioned;Running;Deleting;Failed
type MachinePhase string

const (
	// MachinePending has preCreate hooks, or waits for its bootstrap data.
	MachinePending MachinePhase = "Pending"
	// MachineProvisioning waits for its infrastructure.
	MachineProvisioning MachinePhase = "Provisioning"
	// MachineProvisioned has its infrastructure and waits for its Node.
	MachineProvisioned MachinePhase = "Provisioned"
	// MachineRunning has its Node.
	MachineRunning MachinePhase = "Running"
	// MachineDeleting is being deleted.
	MachineDeleting MachinePhase = "Deleting"
	// MachineFailed has infrastructure or bootstrap data that failed for good.
	MachineFailed MachinePhase = "Failed"
)

// Machine is the life of one node, from its creation to the clean-up after its
// deletion (machine-deletion-process, machine-deletion-hooks).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=ema
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Deleting",type=string,JSONPath=`.status.conditions[?(@.type=="Deleting")].reason`
// +kubebuilder:printcolumn:name="Provider ID",type=string,JSONPath=`.spec.providerID`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Machine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the Machine is made of and how it goes.
	// +required
	Spec MachineSpec `json:"spec"`
	// status is how far it has come.
	// +optional
	Status MachineStatus `json:"status,omitempty"`
}

// MachineList is a list of Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// MachineSpec is what a Machine is made of and how it goes.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || has(self.providerID)",fieldPath=".providerID",message="providerID can be set once and not be removed; a Machine of other infrastructure is another Machine"
// +kubebuilder:validation:XValidation:rule="self.?bootstrap.?configRef.hasValue() == oldSelf.?bootstrap.?configRef.hasValue()",fieldPath=".bootstrap",message="configRef can neither be added nor removed; create another Machine instead"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || !has(self.lifecycleHooks) || !has(self.lifecycleHooks.preCreate) || self.lifecycleHooks.preCreate.all(h, has(oldSelf.lifecycleHooks) && has(oldSelf.lifecycleHooks.preCreate) && oldSelf.lifecycleHooks.preCreate.exists(o, o.name == h.name))",fieldPath=".lifecycleHooks",message="the infrastructure exists, since providerID is set, so that another preCreate hook would hold nothing; use preDrain or preTerminate"
type MachineSpec struct {
	// clusterName is the Cluster, in the Machine's namespace. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="use the name of a Cluster, such as \"east\": lower case letters, digits, - and ., beginning and ending with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName is immutable; create another Machine in the other Cluster"
	ClusterName string `json:"clusterName"`

	// providerID is by what the provider of the infrastructure and the Node know
	// the Machine. Set when the infrastructure has it, and from then on immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="providerID can be set once; a Machine of other infrastructure is another Machine"
	ProviderID string `json:"providerID,omitempty"`

	// bootstrap is what makes a Node of the infrastructure.
	// +optional
	Bootstrap MachineBootstrap `json:"bootstrap,omitempty"`

	// infrastructureRef is the object that stands for the infrastructure. Any kind
	// whose provider is made for these Machines, with the fields of Cluster API's
	// contract. Immutable except for the version.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind && self.name == oldSelf.name && self.apiVersion.split('/')[0] == oldSelf.apiVersion.split('/')[0]",message="infrastructureRef is immutable except for the version in apiVersion; create another Machine instead"
	InfrastructureRef ObjectReference `json:"infrastructureRef"`

	// lifecycleHooks hold the Machine at points of its life.
	// +optional
	LifecycleHooks LifecycleHooks `json:"lifecycleHooks,omitempty"`

	// deletion is how the Machine goes.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty"`
}

// MachineBootstrap is what makes a Node of the infrastructure.
type MachineBootstrap struct {
	// configRef is the object that makes the bootstrap data. Any kind whose provider
	// is made for these Machines, with the fields of Cluster API's contract. Absent
	// if the infrastructure needs none. Immutable except for the version.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind && self.name == oldSelf.name && self.apiVersion.split('/')[0] == oldSelf.apiVersion.split('/')[0]",message="configRef is immutable except for the version in apiVersion; create another Machine instead"
	ConfigRef *ObjectReference `json:"configRef,omitempty"`
}

// LifecycleHooks hold a Machine at points of its life until whoever added them
// removes them. They have no order and never time out. When the Machine is being
// deleted they may only be removed (machine-deletion-hooks).
type LifecycleHooks struct {
	// preCreate hooks are in front of the creation of the infrastructure. None can
	// be added when providerID is set.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PreCreate []LifecycleHook `json:"preCreate,omitempty"`

	// preDrain hooks are in front of the drain of the Node.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PreDrain []LifecycleHook `json:"preDrain,omitempty"`

	// preTerminate hooks are in front of the deletion of the infrastructure.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PreTerminate []LifecycleHook `json:"preTerminate,omitempty"`
}

// LifecycleHook is one who holds a Machine.
type LifecycleHook struct {
	// name of the hook, one to three words such as MigrateImportantApp, pre-drain or
	// example.com/x; 3 to 256 characters without spaces.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]*[A-Za-z][!-~]*$')",message="use at least one letter, and no spaces and no letters beyond ASCII, such as MigrateImportantApp, pre-drain or example.com/x"
	Name string `json:"name"`

	// owner is who removes the hook, in words that tell people whom to ask; 3 to
	// 512 characters.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=512
	Owner string `json:"owner"`
}

// MachineDeletionSpec is how a Machine goes.
type MachineDeletionSpec struct {
	// nodeDrainTimeoutSeconds is how long the drain of the Node may take. Absent or
	// 0 is no limit. What is left then goes with the Machine.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`

	// nodeVolumeDetachTimeoutSeconds is how long volumes may take to be detached.
	// Absent or 0 is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds,omitempty"`

	// nodeDeletionTimeoutSeconds is how long the deletion of the Node is tried,
	// from its first try. 0 is no limit. Defaults to 10.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// MachineStatus is how far a Machine has come. Conditions of the types
// PreCreate<Name>Succeeded, PreDrain<Name>Succeeded and
// PreTerminate<Name>Succeeded belong to whoever implements the hook; everything
// else is written by the Machine controller only.
type MachineStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is how far it has come, for people.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// nodeRef is the Machine's Node, as long as that has the providerID in spec.
	// +optional
	NodeRef *MachineNodeReference `json:"nodeRef,omitempty"`

	// controlPlaneHookSeen is true since the pre-terminate hook of a
	// KubeadmControlPlane was first seen. When it is gone then, the Node has left
	// its control plane and is neither drained nor waited for.
	// +optional
	ControlPlaneHookSeen bool `json:"controlPlaneHookSeen,omitempty"`

	// infrastructureSeen is true since the Machine's infrastructure was first seen.
	// When it is gone then, nothing is left of the Node to be drained.
	// +optional
	InfrastructureSeen bool `json:"infrastructureSeen,omitempty"`

	// deletion is when the steps of the deletion began.
	// +optional
	Deletion *MachineDeletionStatus `json:"deletion,omitempty"`

	// conditions are those of the Machine and of who implements its hooks.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachineNodeReference identifies a Machine's Node.
type MachineNodeReference struct {
	// name of the Node.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// uid of the Node; another one of that name is not the Machine's.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	UID types.UID `json:"uid"`
}

// MachineDeletionStatus is when the steps of a deletion began. Each is written
// before the step acts and never changes.
type MachineDeletionStatus struct {
	// preDrainHookWaitStartTime is when the wait for pre-drain hooks began.
	// +optional
	PreDrainHookWaitStartTime *metav1.Time `json:"preDrainHookWaitStartTime,omitempty"`
	// nodeDrainStartTime is when the drain began.
	// +optional
	NodeDrainStartTime *metav1.Time `json:"nodeDrainStartTime,omitempty"`
	// waitForNodeVolumeDetachStartTime is when the wait for volumes began.
	// +optional
	WaitForNodeVolumeDetachStartTime *metav1.Time `json:"waitForNodeVolumeDetachStartTime,omitempty"`
	// preTerminateHookWaitStartTime is when the wait for pre-terminate hooks began.
	// +optional
	PreTerminateHookWaitStartTime *metav1.Time `json:"preTerminateHookWaitStartTime,omitempty"`
	// infrastructureDeletionStartTime is when the deletion of the infrastructure began.
	// +optional
	InfrastructureDeletionStartTime *metav1.Time `json:"infrastructureDeletionStartTime,omitempty"`
	// bootstrapDeletionStartTime is when the deletion of the bootstrap config began.
	// +optional
	BootstrapDeletionStartTime *metav1.Time `json:"bootstrapDeletionStartTime,omitempty"`
	// nodeDeletionStartTime is when the deletion of the Node began.
	// +optional
	NodeDeletionStartTime *metav1.Time `json:"nodeDeletionStartTime,omitempty"`
}
