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
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="an empty list selects nothing; leave machines out to mean all, or give at least one entry"
	// +kubebuilder:validation:XValidation:rule="self.all(e, self.exists_one(other, e == other))",message="entries in machines must be unique"
	Machines []MachineDrainRuleMachineSelector `json:"machines,omitempty"`

	// pods are the pods that are meant. Absent means all. 1 to 32 unique entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="an empty list selects nothing; leave pods out to mean all, or give at least one entry"
	// +kubebuilder:validation:XValidation:rule="self.all(e, self.exists_one(other, e == other))",message="entries in pods must be unique"
	Pods []MachineDrainRulePodSelector `json:"pods,omitempty"`

	// nodes are the nodes under a NodeMaintenance that are meant. Absent means
	// none. 1 to 32 unique entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="an empty list selects nothing; leave nodes out if no NodeMaintenance is meant, or give at least one entry"
	// +kubebuilder:validation:XValidation:rule="self.all(e, self.exists_one(other, e == other))",message="entries in nodes must be unique"
	Nodes []MachineDrainRuleNodeSelector `json:"nodes,omitempty"`
}

// MachineDrainRuleDrain is how pods are drained.
//
// +kubebuilder:validation:XValidation:rule="!has(self.order) || self.behavior == 'Drain'",fieldPath=".order",message="order must not be set if drain behavior is \"Skip\" or \"WaitCompleted\""
type MachineDrainRuleDrain struct {
	// behavior is Drain, Skip or WaitCompleted.
	// +required
	Behavior DrainBehavior `json:"behavior"`

	// order is when the pods are evicted: when all pods of a lower order are gone.
	// It may be negative, and only be set if the behavior is Drain. Defaults to 0,
	// which is also the order of pods with WaitCompleted.
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	Order *int32 `json:"order,omitempty"`
}

// MachineDrainRuleMachineSelector selects Machines. An entry is not empty.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.clusterSelector)",message="an empty entry does not say what it selects; give it at least one of selector and clusterSelector, such as selector: {} for all"
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
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.namespaceSelector)",message="an empty entry does not say what it selects; give it at least one of selector and namespaceSelector, such as selector: {} for all"
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
// +kubebuilder:validation:XValidation:rule="has(self.selector)",message="an empty entry does not say what it selects; give it a selector, such as selector: {} for all"
type MachineDrainRuleNodeSelector struct {
	// selector selects by the labels of the node. Absent or empty matches all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}
