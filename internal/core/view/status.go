package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// APIVersion of the printed JSON and YAML.
const APIVersion = "cli.ebbtide.dev/v1alpha1"

const (
	maxListed, maxNodes = 200, 5000
	maxPods             = 10
)

// Snapshot holds the objects of a cluster. All but Now and Maintenances are optional.
type Snapshot struct {
	Now          time.Time
	Maintenances []*v1alpha1.NodeMaintenance
	Nodes        map[string]*corev1.Node
	Cordoned     []*corev1.Node
	// Pods holds those of nodes that are shown in detail, with their Evacuations.
	Pods map[string][]Leaving
	// Budgets holds those that block, Records those of the nodes by name.
	Budgets  []*policyv1.PodDisruptionBudget
	Records  map[string]*v1alpha1.DrainRecord
	Machines []*v1alpha1.Machine
	Rollouts []*v1alpha1.NodeRollout
	Seen     map[string]Progress
	// Unread has a sentence for each read error.
	Unread []string
}

// Leaving is a pod that was asked to leave, with its Evacuation.
type Leaving struct {
	Pod        *corev1.Pod
	Evacuation *v1alpha1.Evacuation
}

// StatusList is the printed state of all maintenances.
type StatusList struct {
	metav1.TypeMeta `json:",inline"`
	Time            metav1.Time `json:"time"`
	// Items are sorted by state, active ones first, and by name.
	Items        []Status `json:"items"`
	OmittedCount int      `json:"omittedCount,omitempty"`
	// Rollouts are sorted by state, active ones first, and by name.
	Rollouts []RolloutStatus `json:"rollouts,omitempty"`
	// Cordoned are the nodes held by maintenances, the longest first.
	Cordoned             []Cordon `json:"cordoned,omitempty"`
	OmittedCordonedCount int      `json:"omittedCordonedCount,omitempty"`
	// Circles are groups of objects that wait for each other, a sentence each.
	Circles []string `json:"circles,omitempty"`
	Unread  []string `json:"unread,omitempty"`
}

// State is the progress of a maintenance or node.
type State string

// States of maintenances; StateWaiting and StateReturned are states of nodes. A node that was
// completed early is in StateComplete.
const (
	StatePlanned    State = "planned"
	StateCordoning  State = "cordoning"
	StateDraining   State = "draining"
	StateWaiting    State = "waiting"
	StateBlocked    State = "blocked"
	StateDrained    State = "drained"
	StateReturned   State = "returned"
	StateCompleting State = "completing"
	StateComplete   State = "complete"
	StateInvalid    State = "invalid"
)

// IsDrained reports whether a node is drained or back.
func (s State) IsDrained() bool { return s == StateDrained || s == StateReturned }

// Status is the printed state of a NodeMaintenance.
type Status struct {
	metav1.TypeMeta `json:",inline"`
	Name            string `json:"name"`
	// Stage is Complete for a maintenance that is being deleted.
	Stage v1alpha1.NodeMaintenanceStage `json:"stage"`
	State State                         `json:"state"`
	// Reason is the administrator's, Summary the controller's.
	Reason       string       `json:"reason,omitempty"`
	Summary      string       `json:"summary,omitempty"`
	CreationTime metav1.Time  `json:"creationTime"`
	StageTime    *metav1.Time `json:"stageTime,omitempty"`
	RequestedBy  string       `json:"requestedBy,omitempty"`
	// Rollout is the NodeRollout that created the maintenance.
	Rollout string `json:"rollout,omitempty"`
	// UnlistedCount are the nodes that its status leaves out for its size.
	NodeCount     int `json:"nodeCount"`
	DrainedCount  int `json:"drainedCount"`
	UnlistedCount int `json:"unlistedCount,omitempty"`
	// CompletedCount are the nodes that were completed early; NodeCount excludes them.
	CompletedCount int `json:"completedCount,omitempty"`
	// PodsLeft must leave, PodsBlocked of them are blocked, PodsRetained stay.
	PodsLeft             int       `json:"podsLeft"`
	PodsBlocked          int       `json:"podsBlocked"`
	PodsRetained         int       `json:"podsRetained"`
	Estimate             Estimate  `json:"estimate"`
	Blockers             []Blocker `json:"blockers,omitempty"`
	OmittedBlockersCount int       `json:"omittedBlockersCount,omitempty"`
	// Nodes are sorted: blocked ones first, then those with pods.
	Nodes             []Node   `json:"nodes,omitempty"`
	OmittedNodesCount int      `json:"omittedNodesCount,omitempty"`
	Locks             []Lock   `json:"locks,omitempty"`
	Waits             []Wait   `json:"waits,omitempty"`
	Circles           []string `json:"circles,omitempty"`
	Unread            []string `json:"unread,omitempty"`
}

// Of returns the printed state of a snapshot, whatever the order of its objects.
func Of(s *Snapshot) StatusList {
	list := StatusList{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "MaintenanceStatusList"},
		Time:     metav1.NewTime(s.Now), Unread: s.Unread, Items: []Status{},
	}
	sorted := slices.SortedFunc(slices.Values(s.Maintenances), func(a, b *v1alpha1.NodeMaintenance) int {
		return cmp.Or(cmp.Compare(placeOf(a), placeOf(b)), cmp.Compare(a.Name, b.Name))
	})
	list.Cordoned, list.OmittedCordonedCount = s.cordons()
	list.Rollouts = RolloutsOf(s.Rollouts)
	list.OmittedCount = max(0, len(sorted)-maxListed)
	shown := sorted[:len(sorted)-list.OmittedCount]
	waits := s.waits(shown)
	list.Circles = circles(waits)
	for _, m := range shown {
		one := s.status(m)
		if all := reachable(waits, "nodemaintenance/"+m.Name); len(all) > 0 {
			one.Waits = all[:min(len(all), maxShownWaits)]
			if len(list.Circles) > 0 {
				one.Circles = circles(all)
			}
		}
		list.Items = append(list.Items, one)
	}
	return list
}

// placeOf ranks active maintenances first and completed ones last.
func placeOf(m *v1alpha1.NodeMaintenance) int {
	switch {
	case maintenance.Finished(m):
		return 2
	case maintenance.Stage(m) == v1alpha1.StageIdle:
		return 1
	}
	return 0
}

// One returns the printed state of the only maintenance of a snapshot.
func One(s *Snapshot) Status {
	list := Of(s)
	if len(list.Items) == 0 {
		return Status{}
	}
	one := list.Items[0]
	one.Unread = s.Unread
	return one
}

func (s *Snapshot) status(m *v1alpha1.NodeMaintenance) Status {
	status := Status{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "MaintenanceStatus"},
		Name:     m.Name, Stage: maintenance.Stage(m), State: stateOf(m),
		Reason: excerpt.Line(m.Spec.Reason, maxWords), Summary: excerpt.Line(m.Status.Summary, maxWords),
		RequestedBy:  excerpt.Line(m.Annotations[v1alpha1.RequestedByAnnotation], maxWords),
		CreationTime: m.CreationTimestamp, NodeCount: int(m.Status.NodeCount),
		Rollout: excerpt.Line(m.Labels[v1alpha1.RolloutLabel], maxWords),
	}
	for i := range m.Status.StageStatuses {
		if one := &m.Status.StageStatuses[i]; one.Name == status.Stage && one.StartTimestamp != nil {
			status.StageTime = one.StartTimestamp.DeepCopy()
		}
	}
	s.addNodes(&status, m)
	status.Blockers = blockersOf(m)
	status.OmittedBlockersCount = max(0, len(status.Blockers)-maxBlockers)
	status.Blockers = status.Blockers[:len(status.Blockers)-status.OmittedBlockersCount]
	status.Locks = s.locks(&status)
	status.Estimate = s.estimate(&status)
	return status
}

func (s *Snapshot) addNodes(status *Status, m *v1alpha1.NodeMaintenance) {
	listed := m.Status.NodeStatuses
	for i := range listed {
		node := s.node(m, &listed[i])
		status.PodsLeft += node.PodsLeft
		status.PodsBlocked += node.PodsBlocked
		status.PodsRetained += node.PodsRetained
		if node.State.IsDrained() {
			status.DrainedCount++
		}
		status.Nodes = append(status.Nodes, node)
	}
	if status.Stage != v1alpha1.StageComplete {
		status.UnlistedCount = max(0, status.NodeCount-len(listed))
	}
	// Of many nodes those that are drained are left out first.
	if status.UnlistedCount > 0 && len(listed) > 1 && listed[len(listed)-2].State.IsDrained() {
		status.DrainedCount += status.UnlistedCount
		status.UnlistedCount = 0
	}
	if meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		status.DrainedCount = status.NodeCount
	}
	if stage := status.Stage; stage == v1alpha1.StageCordon || stage == v1alpha1.StageDrain {
		status.CompletedCount = len(m.Spec.CompletedNodes)
		for _, node := range m.Spec.CompletedNodes {
			status.Nodes = append(status.Nodes, Node{Name: excerpt.Line(node.Name, maxWords), State: StateComplete, Message: "Given back."})
		}
	}
	slices.SortStableFunc(status.Nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(b.PodsBlocked, a.PodsBlocked), cmp.Compare(b.PodsLeft, a.PodsLeft),
			cmp.Compare(nodeOrder[a.State], nodeOrder[b.State]), cmp.Compare(a.Name, b.Name))
	})
	status.OmittedNodesCount = max(0, len(status.Nodes)-maxNodes)
	status.Nodes = status.Nodes[:len(status.Nodes)-status.OmittedNodesCount]
}

func stateOf(m *v1alpha1.NodeMaintenance) State {
	blocked := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
	held := blocked != nil && blocked.Status == metav1.ConditionTrue
	switch stage := maintenance.Stage(m); {
	case maintenance.Finished(m):
		return StateComplete
	case held && blocked.Reason == v1alpha1.ReasonInvalidSpec:
		return StateInvalid
	case meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) && stage == v1alpha1.StageDrain:
		return StateDrained
	case held:
		return StateBlocked
	case stage == v1alpha1.StageIdle:
		return StatePlanned
	case stage == v1alpha1.StageCordon:
		return StateCordoning
	case stage == v1alpha1.StageComplete:
		return StateCompleting
	}
	return StateDraining
}
