package maintenance

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// Snapshot is everything that a decision reads. It is never changed by Decide.
type Snapshot struct {
	// Now is the time of the decision.
	Now time.Time
	// ClockSkewed is true while that is not trusted; see package skew.
	ClockSkewed bool
	// Maintenances are all NodeMaintenances, in any order.
	Maintenances []*v1alpha1.NodeMaintenance
	// Nodes are at least all nodes that Select named, in any order.
	Nodes []*corev1.Node
	// Pods are the pods of those nodes, by node name. A node without pods has an
	// empty entry; one without any entry has unknown pods, which nothing is
	// concluded from. A node with an entry that is not among Nodes is gone. Nodes
	// that have a DrainRecord need an entry, too.
	Pods map[string][]Pod
	// Budgets are the PodDisruptionBudgets, by namespace.
	Budgets map[string][]*policyv1.PodDisruptionBudget
	// DrainRecords are by the name of their node.
	DrainRecords map[string]*v1alpha1.DrainRecord
	// LongestLock is how long the lock of a budget may hold; 0 is budget.LongestLock.
	LongestLock time.Duration
	// Rules are the MachineDrainRules of Ebbtide's own namespace, and Facts what
	// they ask about: only namespaces.
	Rules drainrule.Set
	Facts drainrule.Facts
	// Runners tells which built-in evacuators somebody runs.
	Runners Runners
	// Requester is what is known of asking pods to leave by EvictionRequests.
	Requester evictionrequest.Availability
	// Namespace is Ebbtide's own, for messages.
	Namespace string
	// Planned says, by the name of a maintenance in Idle and by node, what it would do there;
	// its status shows that. One that is not there says nothing of its nodes.
	Planned map[string]map[string]v1alpha1.NodeMaintenanceNodeStatus
	// Protect are the keys of the annotations by which autoscalers are to leave nodes under
	// maintenance alone: v1alpha1.KarpenterDoNotDisruptAnnotation,
	// v1alpha1.ScaleDownDisabledAnnotation.
	Protect []string
	// Refused are writes that the API server has refused lately.
	Refused map[Write]Refusal
}

// Pod is a pod and what it was asked.
type Pod struct {
	Object *corev1.Pod
	// Evacuation is nil if there is none.
	Evacuation *v1alpha1.Evacuation
	// Request is what has the name of our EvictionRequest for the pod, whoever made it, and
	// Eviction what has come of requests for it; nil if there is none.
	Request  *lifecyclev1alpha1.EvictionRequest
	Eviction *lifecyclev1alpha1.Eviction
}

// Write names a write of a NodeDecision.
type Write struct {
	Kind WriteKind
	// Node is the name of the node of a cordon or record.
	Node string
	// Pod is the pod of an evacuation, withdrawal or deletion.
	Pod types.UID
}

// WriteKind is which write of a NodeDecision it is.
type WriteKind string

const (
	// WriteCordon is NodeDecision.Cordon.
	WriteCordon WriteKind = "Cordon"
	// WriteDrainRecord is NodeDecision.DrainRecord.
	WriteDrainRecord WriteKind = "DrainRecord"
	// WriteEvacuation is one of NodeDecision.Evacuate.
	WriteEvacuation WriteKind = "Evacuation"
	// WriteWithdrawal is one of NodeDecision.Withdraw.
	WriteWithdrawal WriteKind = "Withdrawal"
	// WriteRequestWithdrawal is one of NodeDecision.WithdrawRequests.
	WriteRequestWithdrawal WriteKind = "RequestWithdrawal"
	// WriteDeletion is one of NodeDecision.Delete.
	WriteDeletion WriteKind = "Deletion"
	// WriteConditions is NodeDecision.Conditions and Retract. It rests after a refusal, and
	// is no blocker.
	WriteConditions WriteKind = "Conditions"
)

// Refusal is why a write failed. The write is not in a decision before Again; it is a
// blocker for as long as the snapshot has its refusal.
type Refusal = blocker.Refusal

// Runners tells which built-in evacuators somebody runs. A DaemonSet or static
// pod that nobody can evacuate is retained.
type Runners struct {
	// DaemonSets is true if the DaemonSet evacuator runs in this cluster.
	DaemonSets bool
	// Agents are by node what is known of its agent. A node without a NodeAgent has none.
	Agents map[string]Agent
}
