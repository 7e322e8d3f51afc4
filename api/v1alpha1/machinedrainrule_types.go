package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DrainBehavior is how a drain treats a pod (machine-drain-rules).
//
// +kubebuilder:validation:Enum=Drain;Skip;WaitCompleted
// +kubebuilder:validation:MaxLength=13
type DrainBehavior string

const (
	// DrainBehaviorDrain evicts the pod and waits until it is gone; the default.
	DrainBehaviorDrain DrainBehavior = "Drain"
	// DrainBehaviorSkip retains the pod: it is neither evicted nor waited for, and
	// nobody waits for its volumes.
	DrainBehaviorSkip DrainBehavior = "Skip"
	// DrainBehaviorWaitCompleted waits until the pod has finished by itself.
	DrainBehaviorWaitCompleted DrainBehavior = "WaitCompleted"
)

// MachineDrainRule says how pods leave the nodes of some Machines, or of some
// NodeMaintenances: whether, and in which order (machine-drain-rules). Of several
// rules that match a pod the first by name counts; the pod's own label counts
// more than any rule.
//
// For Machines the rules of the Machine's namespace count, except those with
// nodes and without machines. For NodeMaintenances the rules with nodes count
// that are in Ebbtide's own namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mdr
// +kubebuilder:printcolumn:name="Behavior",type=string,JSONPath=`.spec.drain.behavior`
// +kubebuilder:printcolumn:name="Order",type=integer,JSONPath=`.spec.drain.order`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MachineDrainRule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is which pods of which nodes are meant, and how they are drained.
	// +required
	Spec MachineDrainRuleSpec `json:"spec"`
}

// MachineDrainRuleList is a list of MachineDrainRules.
//
// +kubebuilder:object:root=true
type MachineDrainRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDrainRule `json:"items"`
}

// MachineDrainRuleSpec is which pods of which nodes are meant, and how they are
// drained. Inside an entry of a list all selectors have to match, of a list one
// entry. A list that is absent matches everything.
type MachineDrainRuleSpec struct {
	// drain is how the pods are drained.
	// +required
	Drain MachineDrainRuleDrain `json:"drain"`

	// machines are the Machines whose nodes are meant. Absent means all, unless
	// there are nodes. 1 to 32 unique entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Machines []MachineDrainRuleMachineSelector `json:"machines,omitempty"`

	// pods are the pods that are meant. Absent means all. 1 to 32 unique entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Pods []MachineDrainRulePodSelector `json:"pods,omitempty"`

	// nodes are the nodes under a NodeMaintenance that are meant. Absent means
	// none. 1 to 32 unique entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Nodes []MachineDrainRuleNodeSelector `json:"nodes,omitempty"`
}

// MachineDrainRuleDrain is how pods are drained.
type MachineDrainRuleDrain struct {
	// behavior is Drain, Skip or WaitCompleted.
	// +required
	Behavior DrainBehavior `json:"behavior"`

	// order is when the pods are evicted: when all pods of a lower order are gone.
	// It may be negative, and only be set if the behavior is Drain. Defaults to 0,
	// which is also the order of pods with WaitCompleted.
	// +optional
	Order *int32 `json:"order,omitempty"`
}

// MachineDrainRuleMachineSelector selects Machines. An entry is not empty.
//
// +structType=atomic
// +kubebuilder:validation:MinProperties=1
type MachineDrainRuleMachineSelector struct {
	// selector selects by the labels of the Machine. Absent or empty matches all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// clusterSelector selects by the labels of the Machine's Cluster. Absent or
	// empty matches all.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

// MachineDrainRulePodSelector selects pods. An entry is not empty.
//
// +structType=atomic
// +kubebuilder:validation:MinProperties=1
type MachineDrainRulePodSelector struct {
	// selector selects by the labels of the pod. Absent or empty matches all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// namespaceSelector selects by the labels of the pod's namespace. Absent or
	// empty matches all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// MachineDrainRuleNodeSelector selects nodes. An entry is not empty.
//
// +structType=atomic
// +kubebuilder:validation:MinProperties=1
type MachineDrainRuleNodeSelector struct {
	// selector selects by the labels of the node. Absent or empty matches all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}
