package preflight

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// APIVersion and Kind identify a Forecast that is printed as JSON or YAML.
const (
	APIVersion = "cli.ebbtide.dev/v1alpha1"
	Kind       = "DrainForecast"
)

// Forecast describes a drain of nodes before it happens.
type Forecast struct {
	metav1.TypeMeta `json:",inline"`
	// Maintenance is the name of the NodeMaintenance; empty if it has none yet.
	Maintenance string      `json:"maintenance,omitempty"`
	Time        metav1.Time `json:"time"`
	Verdict     string      `json:"verdict"`
	// Outcome is Leaves if all nodes are drained, Blocked if one certainly is not, and Completes if
	// only pods that are left to complete hold it up. It is MayBeBlocked if that depends, and
	// Unknown if something could not be read.
	Outcome Outcome `json:"outcome"`
	// WaveCount is in how many waves pods are asked to leave.
	WaveCount int   `json:"waveCount"`
	Total     Count `json:"total"`
	// Nodes lists the drained nodes by name.
	Nodes []NodeForecast `json:"nodes"`
	// Outages lists up to 100 applications that go down, most pods first.
	Outages []Outage `json:"outages,omitempty"`
	// Budgets lists the budgets that slow or block the drain, blocking ones first.
	Budgets []BudgetForecast `json:"budgets,omitempty"`
	// Meetings are other NodeMaintenances of the nodes, by name.
	Meetings []Meeting `json:"meetings,omitempty"`
	// Unread lists objects that could not be read, and what is unknown as a result.
	Unread []Unread `json:"unread,omitempty"`
	// Ignores lists the limits of the estimate, one per line.
	Ignores []string `json:"ignores,omitempty"`
}

// Outcome names the expected end of a pod, or of all pods of a node.
type Outcome string

const (
	// OutcomeLeaves means that it leaves, for all that is known.
	OutcomeLeaves Outcome = "Leaves"
	// OutcomeBlocked means that it does not leave as long as nobody does anything about it.
	OutcomeBlocked Outcome = "Blocked"
	// OutcomeMayBeBlocked means that some of several pods do not leave, by chance.
	OutcomeMayBeBlocked Outcome = "MayBeBlocked"
	// OutcomeCompletes means that the drain waits for the pod to complete.
	OutcomeCompletes Outcome = "Completes"
	// OutcomeWaits means that its turn does not come as long as others do not leave.
	OutcomeWaits Outcome = "Waits"
	// OutcomeUnknown means that it depends on what could not be read.
	OutcomeUnknown Outcome = "Unknown"
	// OutcomeStays means that it stays on purpose and nobody waits for it.
	OutcomeStays Outcome = "Stays"
)

// Action names the treatment of a pod.
type Action string

const (
	// ActionEvict evicts it.
	ActionEvict Action = "Evict"
	// ActionSurge evicts it after it is replaced. Without room it is Blocked by
	// ReplacementUnschedulable.
	ActionSurge Action = "Surge"
	// ActionEvacuator has an evacuator or a responder of another client move it.
	ActionEvacuator Action = "Evacuator"
	// ActionDaemonSet deletes it and keeps its DaemonSet from making another one.
	ActionDaemonSet Action = "DaemonSet"
	// ActionStatic has the agent of the node take its manifest away for the time.
	ActionStatic Action = "Static"
	// ActionDelete deletes it past its budgets, because the deadline comes.
	ActionDelete Action = "Delete"
	// ActionWait waits until it completes by itself.
	ActionWait Action = "WaitForCompletion"
	// ActionNone does nothing yet: it is unknown how to treat it.
	ActionNone Action = "None"
	// ActionAlreadyLeaving does nothing: it terminates already.
	ActionAlreadyLeaving Action = "AlreadyLeaving"
	// ActionKeep leaves it on the node on purpose.
	ActionKeep Action = "Keep"
	// ActionWithNode leaves it to end with the node, as nobody can keep it away.
	ActionWithNode Action = "GoesWithNode"
)

// Count counts pods.
type Count struct {
	Pods int `json:"pods"`
	// Leave, Blocked, MayBeBlocked, Complete, Wait, Unknown and Stay are by their Outcome.
	Leave        int `json:"leave"`
	Blocked      int `json:"blocked"`
	MayBeBlocked int `json:"mayBeBlocked"`
	Complete     int `json:"complete"`
	Wait         int `json:"wait"`
	Unknown      int `json:"unknown"`
	Stay         int `json:"stay"`
	// Held counts the pods that are expected not to leave: those that are Blocked or Wait, and as
	// many of those that MayBeBlocked as do not leave in the end.
	Held int `json:"held"`
	// Unplaceable counts pods whose replacement fits nowhere, DataLost those that lose data,
	// Unreplaced those that leave and are not recreated.
	Unplaceable int `json:"unplaceable"`
	DataLost    int `json:"dataLost"`
	Unreplaced  int `json:"unreplaced"`
}

// NodeForecast describes the drain of one node.
type NodeForecast struct {
	Name string `json:"name"`
	// Outcome is the worst of its pods that are waited for; Leaves if none is left.
	Outcome Outcome `json:"outcome"`
	// Message is the drainMessage that the status of the NodeMaintenance has in the end.
	Message       string `json:"message,omitempty"`
	Unschedulable bool   `json:"unschedulable,omitempty"`
	// LimitedBy and FastForwardedBy name NodeMaintenances that delay or advance pods of the node.
	LimitedBy       string `json:"limitedBy,omitempty"`
	FastForwardedBy string `json:"fastForwardedBy,omitempty"`
	// Waits is the state of the NodeBudget that the node would wait for; empty if it would not wait.
	Waits string `json:"waits,omitempty"`
	// Notes say who else drains the node, or thinks of it, a line each.
	Notes []string `json:"notes,omitempty"`
	Count Count    `json:"count"`
	// Pods are in the order in which they leave, those that stay last.
	Pods []PodForecast `json:"pods"`
}

// PodForecast describes the drain of one pod.
type PodForecast struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Owner is the controller of the pod; nil if it has none.
	Owner    *Owner           `json:"owner,omitempty"`
	Type     v1alpha1.PodType `json:"type"`
	Priority int32            `json:"priority"`
	// Wave is the time at which it is asked to leave, from 1; 0 is never.
	Wave int `json:"wave"`
	// Action is its treatment, and Why gives the reason in one line.
	Action Action `json:"action"`
	Why    string `json:"why,omitempty"`
	// Outcome is its expected end; Blocker is nil if only its place in the order holds it up.
	Outcome Outcome           `json:"outcome"`
	Blocker *v1alpha1.Blocker `json:"blocker,omitempty"`
	// Budgets names its PodDisruptionBudgets. A pod with two is never evicted.
	Budgets []string `json:"budgets,omitempty"`
	// DataLost lists lost data, such as the name of an emptyDir volume, one per line.
	DataLost []string `json:"dataLost,omitempty"`
	// Objection holds its request to be left alone, which is no protection here.
	Objection string `json:"objection,omitempty"`
	// Replacement describes the pod that takes over; nil if it is not recreated or does not leave.
	Replacement *Replacement `json:"replacement,omitempty"`
}

// Owner is the controller of a pod, or the Deployment above its ReplicaSet.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Replacement is the pod that is made in place of another one.
type Replacement struct {
	// Node is its expected node; empty if it fits nowhere or is not created yet.
	Node string `json:"node,omitempty"`
	// Unplaceable is true if it is made and fits nowhere.
	Unplaceable bool   `json:"unplaceable,omitempty"`
	JobFails    bool   `json:"jobFails,omitempty"`
	Why         string `json:"why,omitempty"`
}

// BudgetForecast describes the effect of a PodDisruptionBudget on the drain.
type BudgetForecast struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Allowed   int32  `json:"allowed"`
	// PodCount counts its pods that leave by eviction, HeldCount those expected not to.
	PodCount  int          `json:"podCount"`
	HeldCount int          `json:"heldCount"`
	Effect    BudgetEffect `json:"effect"`
	// Why says why, and Suggestion what helps; both as in a blocker.
	Why        string `json:"why"`
	Suggestion string `json:"suggestion,omitempty"`
}

// BudgetEffect names the effect of a PodDisruptionBudget on the drain.
type BudgetEffect string

const (
	// BudgetSlows means that its pods leave one after the other.
	BudgetSlows BudgetEffect = "Slows"
	// BudgetHolds means that it does not let all of its pods go.
	BudgetHolds BudgetEffect = "Holds"
	// BudgetNever means that it can never allow a disruption.
	BudgetNever BudgetEffect = "Never"
	// BudgetSeveral means that its pods are under another one, too.
	BudgetSeveral BudgetEffect = "Several"
	// BudgetLocked means that a lock keeps its pods for the time.
	BudgetLocked BudgetEffect = "Locked"
)

// Meeting is another NodeMaintenance that has nodes of this one.
type Meeting struct {
	Maintenance string                        `json:"maintenance"`
	Stage       v1alpha1.NodeMaintenanceStage `json:"stage"`
	// Nodes lists up to 10 nodes that both select, by name; NodeCount counts all.
	Nodes     []string `json:"nodes"`
	NodeCount int      `json:"nodeCount"`
	// Message says what that means, in one line.
	Message string `json:"message"`
}
