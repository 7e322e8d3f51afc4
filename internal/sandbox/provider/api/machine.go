package api

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineFinalizer holds a SandboxMachine until its instance is gone.
const MachineFinalizer = "sandbox.ebbtide.dev/machine"

// SandboxMachine is a simulated instance: a node that kwok plays, in the cluster
// of the Machine that owns the SandboxMachine. Nothing is made before it is owned.
//
// When it is deleted the instance stops to answer. Its Node stays, as that of a
// real instance would: the Machine deletes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Provisioned",type=boolean,JSONPath=`.status.initialization.provisioned`
// +kubebuilder:printcolumn:name="Provider ID",type=string,JSONPath=`.spec.providerID`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SandboxMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the instance to make.
	// +optional
	Spec SandboxMachineSpec `json:"spec,omitempty"`
	// status of the instance.
	Status SandboxMachineStatus `json:"status,omitempty"`
}

// SandboxMachineList is a list of SandboxMachines.
//
// +kubebuilder:object:root=true
type SandboxMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SandboxMachine `json:"items"`
}

// SandboxMachineSpec is the instance to make.
type SandboxMachineSpec struct {
	// providerID is "sandbox://", the namespace, "/", and the name of the
	// SandboxMachine. Set when the instance runs.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// nodeLabels are added to the labels that the Node has anyway.
	// +optional
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// taints of the Node.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`

	// createSeconds is the time until the instance runs.
	CreateSeconds int32 `json:"createSeconds,omitempty"`

	// deleteSeconds is the time until the instance is gone.
	DeleteSeconds int32 `json:"deleteSeconds,omitempty"`
}

// SandboxMachineStatus reports the progress of an instance.
type SandboxMachineStatus struct {
	// initialization reports whether the instance exists.
	Initialization SandboxMachineInitialization `json:"initialization,omitempty"`

	// startTime is the start of the instance's creation.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// message says, for people, what the instance is or waits for.
	// +optional
	Message string `json:"message,omitempty"`
}

// SandboxMachineInitialization reports whether the instance exists, which a Machine waits for.
type SandboxMachineInitialization struct {
	// provisioned is true since the instance runs.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}
