package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DataKey is the key of the bootstrap data in its Secret, as Cluster API has it.
const DataKey = "value"

// SandboxConfig makes bootstrap data: a Secret that it owns. Nothing is made
// before a Machine owns the SandboxConfig.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.dataSecretName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SandboxConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the data to make.
	// +optional
	Spec SandboxConfigSpec `json:"spec,omitempty"`
	// status of the data.
	Status SandboxConfigStatus `json:"status,omitempty"`
}

// SandboxConfigList is a list of SandboxConfigs.
//
// +kubebuilder:object:root=true
type SandboxConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SandboxConfig `json:"items"`
}

// SandboxConfigSpec is the data to make.
type SandboxConfigSpec struct {
	// data is the content of the Secret. A simulated instance does not read it.
	Data string `json:"data,omitempty"`
}

// SandboxConfigStatus names the Secret with the data.
type SandboxConfigStatus struct {
	// initialization reports whether the data exists.
	Initialization SandboxConfigInitialization `json:"initialization,omitempty"`

	// dataSecretName is the Secret.
	// +optional
	DataSecretName string `json:"dataSecretName,omitempty"`
}

// SandboxConfigInitialization reports whether the data exists, which a Machine waits for.
type SandboxConfigInitialization struct {
	// dataSecretCreated is true since the Secret is there.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}
