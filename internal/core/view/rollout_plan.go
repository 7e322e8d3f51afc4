package view

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

const (
	// maxSteps and maxStarts bound a plan.
	maxSteps, maxStarts = 200, 1000
)

// RolloutPlan is the printed order in which the nodes of a rollout would start.
type RolloutPlan struct {
	metav1.TypeMeta `json:",inline"`
	Name            string      `json:"name"`
	Time            metav1.Time `json:"time"`
	NodeCount       int         `json:"nodeCount"`
	DoneCount       int         `json:"doneCount"`
	// AssumedSeconds is the time that each node is assumed to take.
	AssumedSeconds int64 `json:"assumedSeconds"`
	// Starts are in their order.
	Starts []RolloutStart `json:"starts,omitempty"`
	// Working and Failed are nodes that have started before.
	Working []RolloutNode `json:"working,omitempty"`
	Failed  []RolloutNode `json:"failed,omitempty"`
	// Waiting says why nodes do not start now, Stuck why they never would.
	Waiting []RolloutWait `json:"waiting,omitempty"`
	Stuck   []RolloutWait `json:"stuck,omitempty"`
	// OmittedCount are the nodes after the last listed one.
	OmittedCount int `json:"omittedCount,omitempty"`
	// Assumed are the gates and requirements that are assumed to hold.
	Assumed []string `json:"assumed,omitempty"`
	Unread  []string `json:"unread,omitempty"`
}

// RolloutStart is the start of a node.
type RolloutStart struct {
	Node      string      `json:"node"`
	StartTime metav1.Time `json:"startTime"`
}

// RolloutPlanOf plans a rollout of the snapshot: it decides again and again, as if each node took the
// given time and none failed.
func RolloutPlanOf(s *rollout.Snapshot, name string, each time.Duration) RolloutPlan {
	p := RolloutPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "RolloutPlan"},
		Name:     name, Time: metav1.NewTime(s.Now), AssumedSeconds: int64(each.Seconds()),
	}
	for _, r := range s.Rollouts {
		if r.Name == name {
			p.Assumed = assumed(&r.Spec)
		}
	}
	sim := newSimulation(s, each)
	for step := range maxSteps {
		status, starts := sim.decide(name)
		if step == 0 {
			first := RolloutOf(&v1alpha1.NodeRollout{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status})
			p.NodeCount, p.DoneCount, p.Waiting, p.Failed = first.NodeCount, first.DoneCount, first.Waiting, first.Failed
			p.Working = slices.DeleteFunc(first.Working, func(n RolloutNode) bool { return n.Reason == v1alpha1.RolloutNodeStarting })
		}
		for _, node := range starts {
			p.Starts = append(p.Starts, RolloutStart{Node: node, StartTime: metav1.NewTime(sim.Now)})
		}
		p.OmittedCount = int(status.WaitingCount)
		if status.WaitingCount == 0 || len(p.Starts) >= maxStarts {
			break
		}
		if !sim.advance() {
			p.Stuck, p.OmittedCount = RolloutOf(&v1alpha1.NodeRollout{Status: status}).Waiting, 0
			break
		}
	}
	return p
}

// simulation is a cluster whose nodes need a fixed time for their maintenance.
type simulation struct {
	*rollout.Snapshot
	each time.Duration
	// ends has the end of each running maintenance of a rollout, by name.
	ends map[string]time.Time
	wake time.Time
}

func newSimulation(s *rollout.Snapshot, each time.Duration) *simulation {
	own := *s
	own.Rollouts, own.Nodes, own.Maintenances = withoutGates(s.Rollouts), slices.Clone(s.Nodes), slices.Clone(s.Maintenances)
	own.Budgets = slices.Clone(s.Budgets)
	sim := &simulation{Snapshot: &own, each: each, ends: map[string]time.Time{}}
	for _, m := range s.Maintenances {
		if m.Labels[v1alpha1.RolloutLabel] != "" && !maintenance.Finished(m) {
			sim.ends[m.Name] = s.Now.Add(each)
		}
	}
	return sim
}

// decide decides once, and returns the status of a rollout and the names of the nodes that start.
func (s *simulation) decide(name string) (status v1alpha1.NodeRolloutStatus, starts []string) {
	d := rollout.Decide(s.Snapshot)
	s.wake = d.WakeTime
	for i := range d.Budgets {
		at := slices.Index(s.Budgets, d.Budgets[i].Budget)
		s.Budgets[at] = s.Budgets[at].DeepCopy()
		s.Budgets[at].Status = d.Budgets[i].Status
	}
	for i := range d.Rollouts {
		one := &d.Rollouts[i]
		at := slices.Index(s.Rollouts, one.Rollout)
		after := one.Rollout.DeepCopy()
		after.Status = one.Status
		s.Rollouts[at] = after
		if after.Name == name {
			status = one.Status
		}
		for _, m := range one.Starts {
			started := m.DeepCopy()
			started.CreationTimestamp = metav1.NewTime(s.Now)
			s.Maintenances = append(s.Maintenances, started)
			s.ends[started.Name] = s.Now.Add(s.each)
			if after.Name == name {
				starts = append(starts, maintenance.NamedNodes(started.Spec.NodeSelector)...)
			}
		}
	}
	return status, starts
}

// advance goes to the next time when something changes; false if nothing does.
func (s *simulation) advance() bool {
	next := s.wake
	for _, end := range s.ends {
		if next.IsZero() || end.Before(next) {
			next = end
		}
	}
	if !next.After(s.Now) {
		return false
	}
	s.Now = next
	for i, m := range s.Maintenances {
		if end, runs := s.ends[m.Name]; runs && !end.After(s.Now) {
			delete(s.ends, m.Name)
			s.Maintenances[i] = s.done(m)
		}
	}
	return true
}

// done returns a maintenance after its end: its node is back, or drained if it stays so.
func (s *simulation) done(m *v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
	m = m.DeepCopy()
	is := func(kind, reason string) {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(s.Now)})
	}
	of := slices.IndexFunc(s.Rollouts, func(r *v1alpha1.NodeRollout) bool { return r.Name == m.Labels[v1alpha1.RolloutLabel] })
	if of >= 0 && s.Rollouts[of].Spec.After == v1alpha1.AfterStayDrained {
		is(v1alpha1.ConditionDrained, v1alpha1.ReasonDrained)
		return m
	}
	if of >= 0 && s.Rollouts[of].Spec.After == v1alpha1.AfterReplace {
		names := maintenance.NamedNodes(m.Spec.NodeSelector)
		s.Nodes = slices.DeleteFunc(s.Nodes, func(n *corev1.Node) bool { return slices.Contains(names, n.Name) })
		m = rollout.AsReplaced(m, s.Now)
	}
	m.Spec.Stage = v1alpha1.StageComplete
	m.Status.StageStatuses = append(m.Status.StageStatuses, v1alpha1.StageStatus{Name: v1alpha1.StageComplete})
	m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == v1alpha1.MaintenanceCompletionFinalizer })
	is(v1alpha1.ConditionSucceeded, v1alpha1.ReasonDrained)
	is(v1alpha1.ConditionReturned, v1alpha1.ReasonDrained)
	s.release(maintenance.NamedNodes(m.Spec.NodeSelector))
	return m
}

// release returns nodes to service.
func (s *simulation) release(names []string) {
	for i, node := range s.Nodes {
		if slices.Contains(names, node.Name) {
			s.Nodes[i] = released(node)
		}
	}
}

// released returns a node after its maintenance: it is schedulable, and no condition asks for more.
func released(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	node.Spec.Unschedulable = false
	delete(node.Annotations, v1alpha1.CordonAnnotation)
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type != corev1.NodeReady {
			c.Status = corev1.ConditionFalse
		}
	}
	return node
}
