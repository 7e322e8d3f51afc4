package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DrainBehavior says how a drain treats a pod (machine-drain-rules).
//
// +kubebuilder:validation:Enum=Drain;Skip;WaitCompleted
// +kubebuilder:validation:MaxLength=13
type DrainBehavior string

const (
	// DrainBehaviorDrain evicts the pod and waits until it is gone. This is the default.
	DrainBehaviorDrain DrainBehavior = "Drain"
	// DrainBehaviorSkip leaves the pod alone, and does not wait for it or its volumes.
	DrainBehaviorSkip DrainBehavior = "Skip"
	// DrainBehaviorWaitCompleted waits until the pod has finished on its own.
	DrainBehaviorWaitCompleted DrainBehavior = "WaitCompleted"
)

// MachineDrainRule says which pods leave the nodes of Machines or NodeMaintenances, and their order
// (machine-drain-rules). The first rule by name that matches a pod applies; the
// pod's own label overrides all rules.
//
// For Machines, rules in the Machine's namespace apply, except those with nodes and without
// machines. For NodeMaintenances, rules with nodes in Ebbtide's own namespace apply.
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

	// spec selects the pods and says how they are drained.
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

// MachineDrainRuleSpec selects pods and says how they are drained. All selectors of an entry have
// to match, and one entry of a list. An unset list matches everything.
type MachineDrainRuleSpec struct {
	// drain says how the pods are drained.
	// +required
	Drain MachineDrainRuleDrain `json:"drain"`

	// machines selects the Machines whose nodes are meant. If unset, all are, unless nodes is set.
	// From 1 to 32 unique entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="an empty list selects nothing; leave machines out to mean all, or give at least one entry"
	// +kubebuilder:validation:XValidation:rule="self.all(e, self.exists_one(other, e == other))",message="entries in machines must be unique"
	Machines []MachineDrainRuleMachineSelector `json:"machines,omitempty"`

	// pods selects the pods. If unset, all are meant. From 1 to 32 unique entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="an empty list selects nothing; leave pods out to mean all, or give at least one entry"
	// +kubebuilder:validation:XValidation:rule="self.all(e, self.exists_one(other, e == other))",message="entries in pods must be unique"
	Pods []MachineDrainRulePodSelector `json:"pods,omitempty"`

	// nodes selects nodes under a NodeMaintenance. If unset, none is meant. From 1 to 32 unique
	// entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="an empty list selects nothing; leave nodes out if no NodeMaintenance is meant, or give at least one entry"
	// +kubebuilder:validation:XValidation:rule="self.all(e, self.exists_one(other, e == other))",message="entries in nodes must be unique"
	Nodes []MachineDrainRuleNodeSelector `json:"nodes,omitempty"`
}

// MachineDrainRuleDrain says how pods are drained.
//
// +kubebuilder:validation:XValidation:rule="!has(self.order) || self.behavior == 'Drain'",fieldPath=".order",message="order must not be set if drain behavior is \"Skip\" or \"WaitCompleted\""
type MachineDrainRuleDrain struct {
	// behavior is Drain, Skip or WaitCompleted.
	// +required
	Behavior DrainBehavior `json:"behavior"`

	// order is the position of the pods: they are evicted when all pods with a lower order are
	// gone. It can be negative, and is only allowed for the behavior Drain. Defaults to 0, which
	// is also the order of WaitCompleted.
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	Order *int32 `json:"order,omitempty"`
}

// MachineDrainRuleMachineSelector selects Machines. At least one field is set.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.clusterSelector)",message="an empty entry does not say what it selects; give it at least one of selector and clusterSelector, such as selector: {} for all"
type MachineDrainRuleMachineSelector struct {
	// selector selects by the labels of the Machine. If unset or empty, all match.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// clusterSelector selects by the labels of the Machine's Cluster. If unset or empty, all
	// match.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

// MachineDrainRulePodSelector selects pods. At least one field is set.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.namespaceSelector)",message="an empty entry does not say what it selects; give it at least one of selector and namespaceSelector, such as selector: {} for all"
type MachineDrainRulePodSelector struct {
	// selector selects by the labels of the pod. If unset or empty, all match.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// namespaceSelector selects by the labels of the pod's namespace. If unset or empty, all
	// match.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// MachineDrainRuleNodeSelector selects nodes. At least one field is set.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="has(self.selector)",message="an empty entry does not say what it selects; give it a selector, such as selector: {} for all"
type MachineDrainRuleNodeSelector struct {
	// selector selects by the labels of the node. If unset or empty, all match.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}
