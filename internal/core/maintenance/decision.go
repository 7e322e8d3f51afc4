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

// Decision is what is done and said about the maintenances of a snapshot. The shell carries
// it out in the order record, act, report: the finalizer and the status of a
// maintenance whose Record is true are written before anything is done to its
// nodes. A failed record stops the nodes of that maintenance and no other.
type Decision struct {
	// Maintenances has an entry for every NodeMaintenance, oldest first, then by name.
	Maintenances []MaintenanceDecision
	// Nodes has an entry for every node that needs something done, by name.
	Nodes []NodeDecision
	// Blocked is by node how many pods that have to leave it each type of blocker
	// holds, whatever fits into a status: every pod once, however many maintenances
	// wait for it.
	Blocked map[string]map[v1alpha1.BlockerType]int32
	// RequeueAfter is when time alone would change the decision; 0 is never. It is
	// no later than the next try of a write that was refused.
	RequeueAfter time.Duration
}

// MaintenanceDecision is what becomes of one NodeMaintenance object.
type MaintenanceDecision struct {
	// Maintenance is the object as it was observed.
	Maintenance *v1alpha1.NodeMaintenance
	// HandOver is the wanted value of v1alpha1.HandedOverAnnotation; empty removes it, nil
	// leaves it alone.
	HandOver *string
	// Complete is true if spec.stage has to be set to Complete, because the
	// object is being deleted or, if Returned, because its node has come back. Then the
	// Status, which says so, is written before, and nothing is done to its nodes after.
	Complete, Returned bool
	// AddFinalizer and DropFinalizer are about MaintenanceCompletionFinalizer.
	AddFinalizer, DropFinalizer bool
	// Status is the complete status to be written.
	Status v1alpha1.NodeMaintenanceStatus
	// Record is true if Status holds what must be in the API before the shell
	// acts: a stage that starts, or drain targets that grew.
	Record bool
	// Urgent is true if a condition changed its status or reason, so that the
	// report does not wait for the write interval.
	Urgent bool
	// Events become true with the status, CompleteEvents with Complete.
	Events, CompleteEvents []event.Event
}

// NodeDecision is what is done to one node and its pods, in this order: Cordon,
// Record, Withdraw, Delete, Evacuate, Conditions. A failed Cordon stops the rest of this
// node, a failed DrainRecord stops nothing.
type NodeDecision struct {
	// Node is the node as it was observed; only a name if it is gone.
	Node *corev1.Node
	// Maintenances are the names of those that must have their records written
	// before this node is touched.
	Maintenances []string
	// Cordon is the change of the cordon and its ledger; nil leaves both alone.
	Cordon *cordon.Change
	// DrainRecord is the change of the node's DrainRecord; nil leaves it alone.
	DrainRecord *drainrecord.Change
	// Evacuate are the pods that need an Evacuation with our instigator finalizer, or an
	// EvictionRequest of ours, and have none, lowest drain plan entry first.
	Evacuate []Request
	// Delete are the pods that are deleted because a deadline has come, lowest priority
	// first.
	Delete []Deletion
	// Withdraw are the Evacuations that lose our instigator finalizer, WithdrawRequests the
	// EvictionRequests of ours that ask no more.
	Withdraw         []*v1alpha1.Evacuation
	WithdrawRequests []RequestWithdrawal
	// Conditions are the node conditions to publish, best effort, and Retract those
	// to remove with them, because no maintenance has the node any more.
	Conditions []corev1.NodeCondition
	Retract    []corev1.NodeConditionType
	// Pinned is true if Conditions may only be written to the node as it was observed: they
	// take the place of what somebody else has written, who may have begun anew.
	Pinned bool
	// Events become true with Cordon.
	Events []event.Event
	// MissesAgent is true if Events tell that the node's agent is silent.
	MissesAgent bool
}

// Request asks a pod to leave its node.
type Request struct {
	// Pod is the pod as it was observed.
	Pod *corev1.Pod
	// Evacuation is the pod's Evacuation that somebody else asked for, which takes
	// our instigator finalizer; nil if it has to be created.
	Evacuation *v1alpha1.Evacuation
	// EvictionRequest, unless nil, has to be created instead of an Evacuation.
	EvictionRequest *lifecyclev1alpha1.EvictionRequest
	// Events become true with the write.
	Events []event.Event
}
