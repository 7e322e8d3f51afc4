package maintenance

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/maintenance/drainrecord"
)

// Decision holds what is done about the maintenances of a snapshot. The shell carries it out in
// the order record, act, report: the finalizer and the status of a maintenance whose Record is
// true are written before its nodes are touched. A failed record stops only its own nodes.
type Decision struct {
	// Maintenances has an entry for every NodeMaintenance, oldest first, then by name.
	Maintenances []MaintenanceDecision
	// Nodes has an entry for every node that needs something done, by name.
	Nodes []NodeDecision
	// Blocked counts the blocked pods by node and type of blocker, each pod once.
	Blocked map[string]map[v1alpha1.BlockerType]int32
	// Waiting are the names of the nodes that wait for a NodeBudget.
	Waiting []string
	// RequeueAfter is the delay until time alone changes the decision, or a refused write is
	// retried; 0 is never.
	RequeueAfter time.Duration
}

// MaintenanceDecision holds what is done to one NodeMaintenance.
type MaintenanceDecision struct {
	Maintenance *v1alpha1.NodeMaintenance
	// HandOver is the new value of v1alpha1.HandedOverAnnotation; "" removes it, nil keeps it.
	HandOver *string
	// Complete is true if spec.stage has to be set to Complete, because the object is being
	// deleted or, if Returned, because its node has come back. Then Status is written before, and
	// nothing is done to its nodes after.
	Complete, Returned          bool
	AddFinalizer, DropFinalizer bool
	Status                      v1alpha1.NodeMaintenanceStatus
	// GiveBack is nil unless the deadline gives nodes back. Then Status is not written, and nothing
	// else is done to the nodes.
	GiveBack *GiveBack
	// Record is true if Status must be stored first: a stage starts, targets grew, or a node is
	// drained that the deadline would give back otherwise.
	Record bool
	// Urgent is true if a condition changed, so that the report does not wait for the interval.
	Urgent                 bool
	Events, CompleteEvents []event.Event
}

// GiveBack gives back the nodes of a maintenance that are not drained at its deadline. All of it is
// one write, in the version of the object that it was decided on.
type GiveBack struct {
	// Nodes are added to spec.completedNodes; if there are none, spec.stage becomes Complete.
	Nodes []v1alpha1.NodeReference
	// Record is the new v1alpha1.GivenBackAnnotation.
	Record string
	Events []event.Event
}

// NodeDecision holds what is done to one node and its pods, in this order: Cordon, DrainRecord,
// Withdraw, Delete, Evacuate, Conditions. A failed Cordon stops the rest of this node, a failed
// DrainRecord nothing.
type NodeDecision struct {
	// Node has only a name if it is gone.
	Node *corev1.Node
	// Maintenances are the names of those that must be recorded before the node is touched.
	Maintenances []string
	// Cordon and DrainRecord are nil if they do not change.
	Cordon      *cordon.Change
	DrainRecord *drainrecord.Change
	// Evacuate is ordered by the drain plan, Delete by priority, the lowest first.
	Evacuate []Request
	Delete   []Deletion
	// Withdraw are the Evacuations that lose our instigator finalizer.
	Withdraw         []*v1alpha1.Evacuation
	WithdrawRequests []RequestWithdrawal
	// Conditions are published, and Retract removed, as no maintenance is left. Best effort.
	Conditions []corev1.NodeCondition
	Retract    []corev1.NodeConditionType
	// Pinned is true if Conditions replace those of another drain, so only in the observed version.
	Pinned bool
	Events []event.Event
	// MissesAgent is true if Events report that the node's agent is silent.
	MissesAgent bool
}

// Request requests a pod to leave its node.
type Request struct {
	Pod *corev1.Pod
	// Evacuation takes our instigator finalizer; nil if it has to be created.
	Evacuation *v1alpha1.Evacuation
	// EvictionRequest, unless nil, is created instead of an Evacuation.
	EvictionRequest *lifecyclev1alpha1.EvictionRequest
	Events          []event.Event
}
