package maintenance

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

func (c *conclusion) maintenanceDecision(m *maintenance) MaintenanceDecision {
	d := MaintenanceDecision{Maintenance: m.object, Status: m.object.Status}
	switch {
	case m.finished:
	case m.invalid != nil && m.stage != v1alpha1.StageComplete:
		c.reportInvalid(m, &d)
	default:
		c.report(m, &d)
	}
	return d
}

func (c *conclusion) report(m *maintenance, d *MaintenanceDecision) {
	c.advanceStage(m, d)
	nodes, sum := c.nodeStatuses(m)
	d.Status.ObservedGeneration = m.object.Generation
	d.Status.NodeCount = int32(len(m.selections) + len(m.waiting))
	d.Status.NodeStatuses, sum.Omitted = status.List(listed(m, nodes))
	d.Status.Conditions = c.conditions(m, sum)
	sum.Late = meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionPastDeadline)
	d.Status.Summary = status.Summary(m.stage, sum, m.ending())
	c.completeAutomatically(m, d)
	d.GiveBack = c.giveBack(m, d)
	d.Record = d.Record || c.grown(m) || m.newlyDrained(nodes) || becameLate(m.object.Status.Conditions, d.Status.Conditions, v1alpha1.ReasonDeletingPods)
	d.Urgent = status.Flipped(m.object.Status.Conditions, d.Status.Conditions)
	d.Events = append(m.events(nodes, d), c.blockedEvents(m, nodes, d)...)
}

// reportInvalid reports the error in the spec. Nothing starts, and what was recorded stays.
func (c *conclusion) reportInvalid(m *maintenance, d *MaintenanceDecision) {
	d.Status.ObservedGeneration = m.object.Generation
	d.Status.Summary = "invalid spec, nothing is done"
	before := m.object.Status.Conditions
	d.Status.Conditions = slices.Clone(before)
	if m.stage == v1alpha1.StageDrain {
		status.Set(m.object, c.Now, &d.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionDrained, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBlocked,
			Message: "Nothing is drained, because the spec is invalid.",
		})
	}
	status.Set(m.object, c.Now, &d.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInvalidSpec, Message: m.invalid.Error(),
	})
	d.Urgent = status.Flipped(before, d.Status.Conditions)
	if status.Became(before, d.Status.Conditions, v1alpha1.ConditionBlocked, v1alpha1.ReasonInvalidSpec) {
		d.Events = append(d.Events, event.InvalidSpec(m.object, m.invalid.Error()))
	}
}

// conditions returns the present conditions; after completion only the ending is left.
func (c *conclusion) conditions(m *maintenance, t status.Totals) []metav1.Condition {
	blocked := status.Blocked(t.Obstacles)
	var wanted status.Conditions
	switch m.stage {
	case v1alpha1.StageDrain:
		wanted.Drained = new(status.Drained(m.object, t, blocked))
		wanted.PastDeadline = c.pastDeadline(m, t, blocked)
		if m.completeWhen != nil {
			wanted.Returned = new(c.handoverOf(m).Verdict.Condition())
		}
	case v1alpha1.StageComplete:
		wanted.Succeeded = new(m.ending())
	}
	if m.holds() || len(t.Obstacles) > 0 {
		wanted.Blocked = &blocked
	}
	return wanted.Apply(m.object, c.Now)
}

func (m *maintenance) ending() metav1.Condition {
	late := ""
	if m.givenBack != nil {
		late = m.givenBack.Message()
	}
	return status.Ending(&m.object.Status, hasStarted(m.object, v1alpha1.StageDrain), !m.starts, late)
}

func add(t *status.Totals, o *outcome, s *nodeStatus) {
	m := s.selection.maintenance
	if m.stage == v1alpha1.StageIdle {
		for i := range s.Blockers {
			t.WouldBlock += s.Blockers[i].PodCount
		}
	}
	t.Nodes++
	t.Pending += s.PodsPendingEvacuation
	t.Evacuating += s.PodsEvacuating
	t.Retained += s.PodsRetained
	t.Cordoned += ones(o.cordon.Change == nil && o.object.Spec.Unschedulable)
	t.Drained += ones(s.Drained)
	t.Returned += ones(o.back(s.selection))
	t.Awaited += ones(m.stage == v1alpha1.StageComplete && o.cordon.Awaited)
	t.Unread += ones(m.stage == v1alpha1.StageDrain && !o.read)
	if m.inPlace != nil {
		t.Budgets += o.lock.Needed
		t.Locked += o.lock.Taken
	}
	for _, more := range s.obstacles.kinds {
		t.Obstacles = status.Add(t.Obstacles, more)
	}
}

// grown returns true if the target of a node is more than its status has recorded.
func (c *conclusion) grown(m *maintenance) bool {
	return m.stage == v1alpha1.StageDrain && slices.ContainsFunc(m.selections, func(one *selection) bool {
		return !one.previous.Set.Equal(c.nodes[one.node.index].target.set)
	})
}

func (m *maintenance) completedNodes() int {
	if !m.holds() {
		return 0
	}
	return len(m.object.Spec.CompletedNodes)
}

// events report what has become true since the observed status.
func (m *maintenance) events(nodes []nodeStatus, d *MaintenanceDecision) []event.Event {
	var events []event.Event
	if m.starts {
		events = append(events, event.StageStarted(m.object, m.stage, len(nodes)))
	}
	before, after := m.object.Status.Conditions, d.Status.Conditions
	if status.Became(before, after, v1alpha1.ConditionDrained, v1alpha1.ReasonNoNodes) {
		events = append(events, event.NoNodes(m.object))
	}
	if m.stage == v1alpha1.StageDrain {
		for i := range nodes {
			events = append(events, nodes[i].events()...)
		}
	}
	if becameLate(before, after, v1alpha1.ReasonDeletingPods, v1alpha1.ReasonWaitingForPods) {
		events = append(events, event.PastDeadline(m.object, meta.FindStatusCondition(after, v1alpha1.ConditionPastDeadline).Message))
	}
	if status.Became(before, after, v1alpha1.ConditionDrained, v1alpha1.ReasonDrained) {
		events = append(events, event.MaintenanceDrained(m.object, len(nodes)))
	}
	return events
}

// events report what has become true of one node in Drain since its last status.
func (s *nodeStatus) events() []event.Event {
	one := s.selection
	m, node, before := one.maintenance, one.node, one.observed
	joined := before == nil || len(before.DrainTargets) == 0
	switch {
	case joined && !one.previous.Set.Empty():
		// The status leaves the node out, so it is unknown.
		return nil
	case s.FastForwardedBy != "" && (joined || before.FastForwardedBy == ""):
		return []event.Event{event.FastForwarded(m.object, node.name(), s.FastForwardedBy)}
	case !joined && s.State == v1alpha1.NodeStateDrained && before.State != "" && before.State != v1alpha1.NodeStateDrained:
		// An older manager wrote no state and may have published the event.
		return []event.Event{event.NodeDrained(node.object, m.name())}
	default:
		return nil
	}
}
