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
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
)

// Snapshot holds everything that a decision reads. Decide does not change it.
type Snapshot struct {
	Now         time.Time
	ClockSkewed bool
	// Maintenances are all NodeMaintenances, in any order.
	Maintenances []*v1alpha1.NodeMaintenance
	// Nodes are at least the selected and the marked ones, in any order.
	Nodes []*corev1.Node
	// Pods are by node name. A node without pods has an empty entry; without an entry its pods
	// are unknown. A node with an entry that is not among Nodes is gone. Nodes with a DrainRecord
	// need an entry, too.
	Pods         map[string][]Pod
	Budgets      map[string][]*policyv1.PodDisruptionBudget
	DrainRecords map[string]*v1alpha1.DrainRecord
	// LongestLock bounds the lock of a budget; 0 is budget.LongestLock.
	LongestLock time.Duration
	// NodeBudgets hold nodes back that no maintenance has cordoned.
	NodeBudgets nodebudget.Set
	// Rules holds those of Ebbtide's namespace, Facts the namespaces that they select by.
	Rules   drainrule.Set
	Facts   drainrule.Facts
	Runners Runners
	// Requester tells whether EvictionRequests can be used.
	Requester evictionrequest.Availability
	Planned   map[string]map[string]v1alpha1.NodeMaintenanceNodeStatus
	// Protect lists annotations that keep autoscalers from removing nodes under maintenance.
	Protect []string
	Refused map[Write]Refusal
}

// Pod is a pod with the requests that it leaves; nil if there is none.
type Pod struct {
	Object     *corev1.Pod
	Evacuation *v1alpha1.Evacuation
	// Request has the name of our EvictionRequest for the pod, by whatever requester.
	Request  *lifecyclev1alpha1.EvictionRequest
	Eviction *lifecyclev1alpha1.Eviction
}

// Write names a write of a NodeDecision.
type Write struct {
	Kind WriteKind
	Node string    // of a cordon, record or condition
	Pod  types.UID // of an evacuation, withdrawal or deletion
}

// WriteKind names a kind of write of a NodeDecision.
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
	// WriteConditions is NodeDecision.Conditions and Retract. Its refusal is no blocker.
	WriteConditions WriteKind = "Conditions"
)

// Refusal explains a failed write, which blocks as long as it is in the snapshot, and is retried at
// Again.
type Refusal = blocker.Refusal

// Runners tells which built-in evacuators run. DaemonSet and static pods without an evacuator are
// retained.
type Runners struct {
	DaemonSets bool
	Agents     map[string]Agent // by node
}
