package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodeBudget limits how many nodes are unavailable at the same time, over all NodeRollouts and, if it
// applies to all, NodeMaintenances of users. A node starts only if every NodeBudget that selects it
// allows it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nbu
// +kubebuilder:printcolumn:name="Max",type=string,JSONPath=`.spec.maxUnavailable`
// +kubebuilder:printcolumn:name="AppliesTo",type=string,JSONPath=`.spec.appliesTo`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodeCount`
// +kubebuilder:printcolumn:name="Unavailable",type=integer,JSONPath=`.status.unavailableCount`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeBudget struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec NodeBudgetSpec `json:"spec"`
	// status is the observed state.
	// +optional
	Status NodeBudgetStatus `json:"status,omitempty"`
}

// NodeBudgetList is a list of NodeBudgets.
//
// +kubebuilder:object:root=true
type NodeBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeBudget `json:"items"`
}

// NodeBudgetSpec says how many of which nodes may be unavailable.
type NodeBudgetSpec struct {
	// nodeSelector selects the nodes by labels or by name, as in a NodeMaintenance.
	// +required
	NodeSelector *corev1.NodeSelector `json:"nodeSelector"`

	// maxUnavailable is the number of selected nodes that may be unavailable, from 1 to 256, or a
	// percentage of the selected nodes, rounded down, at least 1 and at most 256. A node is
	// unavailable if it is not Ready, unschedulable, or under any maintenance, also one that
	// failed or stays drained. Defaults to 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 256 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable is a number from 1 to 256, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// topologyKey is a node label, such as topology.kubernetes.io/zone. If set, a node starts only
	// while the unavailable nodes are in its domain; nodes without the label form a domain.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="use a label key such as topology.kubernetes.io/zone"
	TopologyKey string `json:"topologyKey,omitempty"`

	// appliesTo is Rollouts, or All to also hold NodeMaintenances of users in Cordon and Drain: each
	// node waits, with a blocker of type NodeBudget, until status.working lists it. Nodes that are
	// cordoned by a NodeMaintenance already, nodes that shut down, and NodeMaintenances for deleted
	// Machines are not held. Defaults to Rollouts.
	// +optional
	// +default="Rollouts"
	AppliesTo NodeBudgetScope `json:"appliesTo,omitempty"`
}

// NodeBudgetScope says what a NodeBudget holds.
//
// +kubebuilder:validation:Enum=Rollouts;All
type NodeBudgetScope string

const (
	// NodeBudgetOfRollouts holds the nodes of NodeRollouts.
	NodeBudgetOfRollouts NodeBudgetScope = "Rollouts"
	// NodeBudgetOfAll also holds nodes of NodeMaintenances that users create.
	NodeBudgetOfAll NodeBudgetScope = "All"
)

// NodeBudgetStatus is the observed state of a budget. Only the rollout controller writes it.
type NodeBudgetStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// summary is the state in one line, for people. It names the field of an invalid spec.
	// +optional
	Summary string `json:"summary,omitempty"`

	// nodeCount is the number of selected nodes.
	// +optional
	NodeCount int32 `json:"nodeCount"`
	// unavailableCount is the number of selected nodes that are unavailable.
	// +optional
	UnavailableCount int32 `json:"unavailableCount"`

	// working lists the selected nodes that have been started and are not given back, by name, and,
	// if the budget applies to all, those under NodeMaintenances of users. It is written before a
	// node is cordoned. At most 256.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Working []BudgetNode `json:"working,omitempty"`
}

// BudgetNode is a node under maintenance that a budget selects.
type BudgetNode struct {
	// name of the node.
	// +required
	Name string `json:"name"`
	// nodeMaintenanceName is the name of its NodeMaintenance.
	// +required
	NodeMaintenanceName string `json:"nodeMaintenanceName"`
	// nodeMaintenanceUID is the UID of a NodeMaintenance of a user.
	// +optional
	NodeMaintenanceUID types.UID `json:"nodeMaintenanceUID,omitempty"`
	// nodeRolloutName is the name of the NodeRollout that started it; empty if none did.
	// +optional
	NodeRolloutName string `json:"nodeRolloutName,omitempty"`
}
