package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is where Machines of its namespace run: the cluster that Ebbtide
// itself runs in or, with a kubeconfig, another one. Its labels serve the
// clusterSelector of MachineDrainRules (machine-deletion-process).
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

	// spec is how the cluster is reached and run.
	// +optional
	Spec ClusterSpec `json:"spec,omitempty"`
	// status is what is known of it.
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

// ClusterSpec is how a cluster is reached and run.
type ClusterSpec struct {
	// kubeconfigSecretRef is the Secret in the Cluster's namespace that holds the
	// kubeconfig. Absent means the cluster that Ebbtide runs in.
	// +optional
	KubeconfigSecretRef *SecretKeyReference `json:"kubeconfigSecretRef,omitempty"`

	// paused stops all work on the Cluster's Machines.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// controlPlane is how the control plane is run.
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

	// key in the Secret. Defaults to "value", as Cluster API has it.
	// +optional
	// +default="value"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._A-Za-z0-9]+$') && !self.startsWith('..') && self != '.'",message="use the key of a Secret, such as \"value\": letters, digits, -, _ and ."
	Key string `json:"key,omitempty"`
}

// ClusterControlPlane is how a control plane is run.
type ClusterControlPlane struct {
	// externallyManaged is true if the control plane does not run on Machines, or
	// on Machines that others look after. The nodes of Machines are then drained
	// and deleted although no control-plane Machine is left.
	// +optional
	ExternallyManaged bool `json:"externallyManaged,omitempty"`

	// ref is the object, in the Cluster's namespace, that manages the control
	// plane. While it is being deleted nodes are neither drained nor deleted.
	// +optional
	Ref *ObjectReference `json:"ref,omitempty"`
}

// ObjectReference names an object in the namespace of the one that refers to it.
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

// ClusterStatus is what is known of a cluster.
type ClusterStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// controlPlaneMachinesSeen is true since the cluster first had a control-plane
	// Machine. From then on, unless the control plane is externally managed, the
	// cluster is taken for lost when none is left, and its nodes are not touched.
	// +optional
	ControlPlaneMachinesSeen bool `json:"controlPlaneMachinesSeen,omitempty"`

	// holdOff is there while the cluster is left alone because it has exceeded a
	// bound, and remembers that over restarts of the manager.
	// +optional
	HoldOff *ClusterHoldOff `json:"holdOff,omitempty"`

	// conditions are Reachable, and Deleting while Machines hold the Cluster.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterHoldOff is for how long a cluster is left alone that has exceeded a bound.
type ClusterHoldOff struct {
	// breachCount is how many times in a row it has exceeded one.
	// +required
	// +kubebuilder:validation:Minimum=1
	BreachCount int32 `json:"breachCount"`
	// endTime is when it is connected again at the earliest. More than 30 minutes are
	// not waited.
	// +required
	EndTime metav1.Time `json:"endTime"`
}
