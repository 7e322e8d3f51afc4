package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is the cluster of the Machines in its namespace: Ebbtide's own, or another one with a
// kubeconfig. The clusterSelector of MachineDrainRules uses its labels (machine-deletion-process).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=ecl
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=="Reachable")].status`
// +kubebuilder:printcolumn:name="Paused",type=boolean,JSONPath=`.spec.paused`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec ClusterSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

// ClusterSpec describes how to reach a cluster.
type ClusterSpec struct {
	// kubeconfigSecretRef is the Secret with the kubeconfig, in the Cluster's namespace. If unset,
	// it is Ebbtide's own cluster.
	// +optional
	KubeconfigSecretRef *SecretKeyReference `json:"kubeconfigSecretRef,omitempty"`

	// paused stops all work on the Cluster's Machines.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// controlPlane describes the control plane.
	// +optional
	ControlPlane ClusterControlPlane `json:"controlPlane,omitempty"`
}

// SecretKeyReference names a key of a Secret.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="use the name of a Secret, such as \"east-kubeconfig\": lower case letters, digits, - and ., beginning and ending with a letter or digit"
	Name string `json:"name"`

	// key in the Secret. Defaults to "value", as in Cluster API.
	// +optional
	// +default="value"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._A-Za-z0-9]+$') && !self.startsWith('..') && self != '.'",message="use the key of a Secret, such as \"value\": letters, digits, -, _ and ."
	Key string `json:"key,omitempty"`
}

// ClusterControlPlane describes a control plane.
type ClusterControlPlane struct {
	// externallyManaged is true if the control plane does not run on Machines of this Cluster.
	// Nodes are then drained and deleted even if no control plane Machine is left.
	// +optional
	ExternallyManaged bool `json:"externallyManaged,omitempty"`

	// ref is the object in the Cluster's namespace that manages the control plane. While it is
	// being deleted, nodes are neither drained nor deleted.
	// +optional
	Ref *ObjectReference `json:"ref,omitempty"`
}

// ObjectReference names an object in the same namespace.
type ObjectReference struct {
	// apiVersion is the group and version.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="use a group and a version, such as \"infrastructure.cluster.x-k8s.io/v1beta2\""
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('ebbtide.dev/')",message="name an object of a provider; Machines and Clusters are not made of each other, and would hold each other for ever"
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$')",message="use a kind, such as \"DockerMachine\": letters, digits and -, beginning with a letter"
	Kind string `json:"kind"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="use the name of an object, such as \"east-1\": lower case letters, digits, - and ., beginning and ending with a letter or digit"
	Name string `json:"name"`
}

// ClusterStatus is the observed state of a cluster.
type ClusterStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// controlPlaneMachinesSeen is true once the cluster has had a control plane Machine. If none
	// is left afterwards, and the control plane is not externally managed, the cluster counts as
	// lost and its nodes are not touched.
	// +optional
	ControlPlaneMachinesSeen bool `json:"controlPlaneMachinesSeen,omitempty"`

	// holdOff is set while the cluster is disconnected because it exceeded a limit.
	// +optional
	HoldOff *ClusterHoldOff `json:"holdOff,omitempty"`

	// conditions are Reachable, and Deleting while Machines hold the Cluster.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterHoldOff says how long a cluster stays disconnected that exceeded a limit.
type ClusterHoldOff struct {
	// breachCount is the number of times in a row that it exceeded a limit.
	// +required
	// +kubebuilder:validation:Minimum=1
	BreachCount int32 `json:"breachCount"`
	// endTime is the earliest time of the next connection, at most 30 minutes ahead.
	// +required
	EndTime metav1.Time `json:"endTime"`
}
