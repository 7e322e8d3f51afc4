package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Defaults of a Machine.
const (
	// DefaultNodeDeletionTimeoutSeconds limits the retries of the deletion of a Node. A cloud
	// controller manager usually deletes it as well.
	DefaultNodeDeletionTimeoutSeconds = 10
)

// MachinePhase is the progress of a Machine, for people.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;Provisioned;Running;Deleting;Failed
type MachinePhase string

const (
	// MachinePending waits for preCreate hooks or its bootstrap data.
	MachinePending MachinePhase = "Pending"
	// MachineProvisioning waits for its infrastructure.
	MachineProvisioning MachinePhase = "Provisioning"
	// MachineProvisioned has its infrastructure and waits for its Node.
	MachineProvisioned MachinePhase = "Provisioned"
	// MachineRunning has its Node.
	MachineRunning MachinePhase = "Running"
	// MachineDeleting is being deleted.
	MachineDeleting MachinePhase = "Deleting"
	// MachineFailed has infrastructure or bootstrap data that failed permanently.
	MachineFailed MachinePhase = "Failed"
)

// Machine represents one node from creation to deletion (machine-deletion-process,
// machine-deletion-hooks).
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

	// spec is the desired state.
	// +required
	Spec MachineSpec `json:"spec"`
	// status is the observed state.
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

// MachineSpec is the desired state of a Machine.
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

	// providerID identifies the Machine at its provider and on its Node. Set once the
	// infrastructure has it, and then immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="providerID can be set once; a Machine of other infrastructure is another Machine"
	ProviderID string `json:"providerID,omitempty"`

	// bootstrap describes how the infrastructure becomes a Node.
	// +optional
	Bootstrap MachineBootstrap `json:"bootstrap,omitempty"`

	// infrastructureRef is the infrastructure object. Its provider must be made for these Machines
	// and follow Cluster API's contract. Immutable except for the version.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind && self.name == oldSelf.name && self.apiVersion.split('/')[0] == oldSelf.apiVersion.split('/')[0]",message="infrastructureRef is immutable except for the version in apiVersion; create another Machine instead"
	InfrastructureRef ObjectReference `json:"infrastructureRef"`

	// lifecycleHooks pause the Machine at steps of its life.
	// +optional
	LifecycleHooks LifecycleHooks `json:"lifecycleHooks,omitempty"`

	// deletion configures the deletion.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty"`
}

// MachineBootstrap describes how the infrastructure becomes a Node.
type MachineBootstrap struct {
	// configRef is the object that creates the bootstrap data. Its provider must be made for these
	// Machines and follow Cluster API's contract. If unset, the infrastructure needs none.
	// Immutable except for the version.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind && self.name == oldSelf.name && self.apiVersion.split('/')[0] == oldSelf.apiVersion.split('/')[0]",message="configRef is immutable except for the version in apiVersion; create another Machine instead"
	ConfigRef *ObjectReference `json:"configRef,omitempty"`
}

// LifecycleHooks pause a Machine until their owners remove them. They have no order and no
// timeout. On a deleted Machine they can only be removed (machine-deletion-hooks).
type LifecycleHooks struct {
	// preCreate hooks delay the creation of the infrastructure. None can be added once providerID
	// is set.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PreCreate []LifecycleHook `json:"preCreate,omitempty"`

	// preDrain hooks delay the drain of the Node.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PreDrain []LifecycleHook `json:"preDrain,omitempty"`

	// preTerminate hooks delay the deletion of the infrastructure.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PreTerminate []LifecycleHook `json:"preTerminate,omitempty"`
}

// LifecycleHook pauses a Machine.
type LifecycleHook struct {
	// name of the hook, such as MigrateImportantApp, pre-drain or example.com/x. From 3 to 256
	// characters without spaces.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]*[A-Za-z][!-~]*$')",message="use at least one letter, and no spaces and no letters beyond ASCII, such as MigrateImportantApp, pre-drain or example.com/x"
	Name string `json:"name"`

	// owner is the person or component that removes the hook. From 3 to 512 characters.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=512
	Owner string `json:"owner"`
}

// MachineDeletionSpec configures the deletion of a Machine.
type MachineDeletionSpec struct {
	// nodeDrainTimeoutSeconds is the time limit of the drain of the Node. The remaining pods are
	// then deleted with the Machine. If unset or 0, there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`

	// nodeVolumeDetachTimeoutSeconds is the time limit for volumes to detach. If unset or 0,
	// there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds,omitempty"`

	// nodeDeletionTimeoutSeconds is the time limit for the deletion of the Node. 0 means no
	// limit. Defaults to 10.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// MachineStatus is the observed state of a Machine. Conditions PreCreate<Name>Succeeded,
// PreDrain<Name>Succeeded and PreTerminate<Name>Succeeded belong to the owners of hooks; the
// Machine controller writes everything else.
type MachineStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is the progress, for people.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// nodeRef is the Machine's Node, while it has the providerID in spec.
	// +optional
	NodeRef *MachineNodeReference `json:"nodeRef,omitempty"`

	// controlPlaneHookSeen is true once the pre-terminate hook of a KubeadmControlPlane was seen.
	// When the hook is gone, the Node has left its control plane and is neither drained nor
	// awaited.
	// +optional
	ControlPlaneHookSeen bool `json:"controlPlaneHookSeen,omitempty"`

	// infrastructureSeen is true once the Machine's infrastructure was seen. If it is gone
	// afterwards, there is no Node to drain.
	// +optional
	InfrastructureSeen bool `json:"infrastructureSeen,omitempty"`

	// deletion has the start times of the deletion's steps.
	// +optional
	Deletion *MachineDeletionStatus `json:"deletion,omitempty"`

	// conditions are set by Ebbtide and by the owners of hooks.
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
	// uid of the Node.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	UID types.UID `json:"uid"`
}

// MachineDeletionStatus has the start times of a deletion's steps. Each is written before the step
// acts and never changes.
type MachineDeletionStatus struct {
	// preDrainHookWaitStartTime is the start of the wait for pre-drain hooks.
	// +optional
	PreDrainHookWaitStartTime *metav1.Time `json:"preDrainHookWaitStartTime,omitempty"`
	// nodeDrainStartTime is the start of the drain.
	// +optional
	NodeDrainStartTime *metav1.Time `json:"nodeDrainStartTime,omitempty"`
	// waitForNodeVolumeDetachStartTime is the start of the wait for volumes.
	// +optional
	WaitForNodeVolumeDetachStartTime *metav1.Time `json:"waitForNodeVolumeDetachStartTime,omitempty"`
	// preTerminateHookWaitStartTime is the start of the wait for pre-terminate hooks.
	// +optional
	PreTerminateHookWaitStartTime *metav1.Time `json:"preTerminateHookWaitStartTime,omitempty"`
	// infrastructureDeletionStartTime is the start of the infrastructure's deletion.
	// +optional
	InfrastructureDeletionStartTime *metav1.Time `json:"infrastructureDeletionStartTime,omitempty"`
	// bootstrapDeletionStartTime is the start of the bootstrap config's deletion.
	// +optional
	BootstrapDeletionStartTime *metav1.Time `json:"bootstrapDeletionStartTime,omitempty"`
	// nodeDeletionStartTime is the start of the Node's deletion.
	// +optional
	NodeDeletionStartTime *metav1.Time `json:"nodeDeletionStartTime,omitempty"`
}
