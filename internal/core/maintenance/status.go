package maintenance

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// maintenanceDecision decides what becomes of one NodeMaintenance.
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

// report builds the status of one maintenance and what goes with it.
func (c *conclusion) report(m *maintenance, d *MaintenanceDecision) {
	c.advanceStage(m, d)
	nodes, sum := c.nodeStatuses(m)
	listed, omitted := list(m, nodes)
	d.Status.ObservedGeneration = m.object.Generation
	d.Status.NodeCount = int32(len(m.selections))
	d.Status.NodeStatuses = listed
	d.Status.Conditions = c.conditions(m, sum)
	sum.late = meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionPastDeadline)
	d.Status.Summary = m.summary(sum, omitted)
	c.completeByItself(m, d)
	d.Record = d.Record || c.grown(m) || becameLate(m.object.Status.Conditions, d.Status.Conditions, v1alpha1.ReasonDeletingPods)
	d.Urgent = conditionsFlipped(m.object.Status.Conditions, d.Status.Conditions)
	d.Events = append(m.events(nodes, d), c.blockedEvents(m, nodes, d)...)
}

// reportInvalid says what is wrong with a maintenance that is not understood.
// Nothing starts, and what was recorded before stays.
func (c *conclusion) reportInvalid(m *maintenance, d *MaintenanceDecision) {
	d.Status.ObservedGeneration = m.object.Generation
	d.Status.Summary = "invalid spec, nothing is done"
	d.Status.Conditions = c.invalidConditions(m)
	before := m.object.Status.Conditions
	d.Urgent = conditionsFlipped(before, d.Status.Conditions)
	if became(before, d.Status.Conditions, v1alpha1.ConditionBlocked, v1alpha1.ReasonInvalidSpec) {
		d.Events = append(d.Events, event.InvalidSpec(m.object, m.invalid.Error()))
	}
}

// totals is a maintenance in numbers.
type totals struct {
	nodes, drained, unread int
	// returned are those of the drained nodes that are back.
	returned int
	// awaited are those that are not given back as long as somebody else removes them.
	awaited int
	// cordoned are the nodes that hold their cordon.
	cordoned                      int
	pending, evacuating, retained int32
	// budgets are to be locked for the pods that stay, locked are.
	budgets, locked int
	// doomed are pods that would be blocked if the nodes were drained.
	doomed int32
	// late is true if pods are left at the deadline.
	late bool
	// obstacles are those of all nodes, by type.
	obstacles []obstacleKind
}

func (t totals) left() int32 { return t.pending + t.evacuating }

// blocked is how many pods something holds.
func (t totals) blocked() int32 {
	pods := int32(0)
	for i := range t.obstacles {
		pods += t.obstacles[i].pods
	}
	return pods
}

func (t *totals) add(o *outcome, status *nodeStatus) {
	m := status.selection.maintenance
	if m.stage == v1alpha1.StageIdle {
		for i := range status.Blockers {
			t.doomed += status.Blockers[i].PodCount
		}
	}
	t.nodes++
	t.pending += status.PodsPendingEvacuation
	t.evacuating += status.PodsEvacuating
	t.retained += status.PodsRetained
	t.cordoned += ones(o.cordon.Change == nil && o.object.Spec.Unschedulable)
	t.drained += ones(status.drained)
	t.returned += ones(o.back(status.selection))
	t.awaited += ones(m.stage == v1alpha1.StageComplete && o.cordon.Awaited)
	t.unread += ones(m.stage == v1alpha1.StageDrain && !o.read)
	if m.inPlace != nil {
		t.budgets += o.lock.needed
		t.locked += o.lock.taken
	}
	for _, kind := range status.obstacles.kinds {
		t.obstacles = addKind(t.obstacles, kind)
	}
}

// grown returns true if the target of some node is more than what the status has
// recorded for it.
func (c *conclusion) grown(m *maintenance) bool {
	if m.stage != v1alpha1.StageDrain {
		return false
	}
	for _, one := range m.selections {
		if !one.previous.set.Equal(c.nodes[one.node.index].target.set) {
			return true
		}
	}
	return false
}

// summary is the state in one short line.
func (m *maintenance) summary(t totals, omitted int) string {
	var words []string
	switch m.stage {
	case v1alpha1.StageIdle:
		words = append(words, plural(t.nodes, "node")+" planned")
	case v1alpha1.StageCordon:
		words = append(words, fmt.Sprintf("%d/%d nodes cordoned", t.cordoned, t.nodes))
	case v1alpha1.StageComplete:
		ending := strings.TrimSuffix(m.ending().Message, ".")
		words = append(words, strings.ToLower(ending[:1])+ending[1:])
	default:
		words = append(words, fmt.Sprintf("%d/%d nodes drained", t.drained, t.nodes))
	}
	left := "left"
	if m.stage == v1alpha1.StageIdle {
		left = "to leave"
	}
	for _, part := range []struct {
		number int
		text   string
	}{
		{t.returned, fmt.Sprintf("%d back", t.returned)},
		{int(t.left()), plural(t.left(), "pod") + " " + left},
		{int(t.blocked()), fmt.Sprintf("%d blocked", t.blocked())},
		{int(t.doomed), fmt.Sprintf("%d would be blocked", t.doomed)},
		{t.budgets - t.locked, plural(t.budgets-t.locked, "budget") + " not locked"},
		{t.unread, plural(t.unread, "node") + " not read"},
		{t.awaited, plural(t.awaited, "node") + " cordoned until others are through with draining"},
		{omitted, plural(omitted, "node") + " not listed"},
		{ones(t.late), "past the deadline"},
		{m.givenBack(), fmt.Sprintf("%d given back", m.givenBack())},
	} {
		if part.number > 0 {
			words = append(words, part.text)
		}
	}
	return strings.Join(words, ", ")
}

// givenBack is how many nodes are given back before the others.
func (m *maintenance) givenBack() int {
	if !m.holds() {
		return 0
	}
	return len(m.object.Spec.CompletedNodes)
}

// plural is a number of things in words.
func plural[N int | int32](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// events are what has become true since the observed status.
func (m *maintenance) events(nodes []nodeStatus, d *MaintenanceDecision) []event.Event {
	var events []event.Event
	if m.starts {
		events = append(events, event.StageStarted(m.object, m.stage, len(nodes)))
	}
	before, after := m.object.Status.Conditions, d.Status.Conditions
	if became(before, after, v1alpha1.ConditionDrained, v1alpha1.ReasonNoNodes) {
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
	if became(before, after, v1alpha1.ConditionDrained, v1alpha1.ReasonDrained) {
		events = append(events, event.MaintenanceDrained(m.object, len(nodes)))
	}
	return events
}

// events are what has become true of one node in Drain since it was last reported.
func (s *nodeStatus) events() []event.Event {
	one := s.selection
	m, node, before := one.maintenance, one.node, one.observed
	joined := before == nil || len(before.DrainTargets) == 0
	switch {
	case joined && !one.previous.set.Empty():
		// The status leaves the node out and nobody knows.
		return nil
	case s.FastForwardedBy != "" && (joined || before.FastForwardedBy == ""):
		return []event.Event{event.FastForwarded(m.object, node.name(), s.FastForwardedBy)}
	case !joined && s.State == v1alpha1.NodeStateDrained && before.State != "" && before.State != v1alpha1.NodeStateDrained:
		// An older manager wrote no state: nobody knows whether it told this already.
		return []event.Event{event.NodeDrained(node.object, m.name())}
	default:
		return nil
	}
}
