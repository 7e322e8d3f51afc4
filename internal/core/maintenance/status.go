package maintenance

import (
	"fmt"
	"slices"
	"strings"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// maintenanceDecisions decides what becomes of every NodeMaintenance.
func (p *pass) maintenanceDecisions() []MaintenanceDecision {
	decisions := make([]MaintenanceDecision, 0, len(p.intents))
	for _, i := range p.intents {
		d := MaintenanceDecision{Maintenance: i.object, Status: i.object.Status}
		switch {
		case i.finished:
		case i.invalid != nil && i.stage != v1alpha1.StageComplete:
			p.reportInvalid(i, &d)
		default:
			p.report(i, &d)
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// report builds the status of one maintenance and what goes with it.
func (p *pass) report(i *intent, d *MaintenanceDecision) {
	p.stages(i, d)
	t := i.tally()
	omitted := 0
	d.Status.ObservedGeneration = i.object.Generation
	d.Status.NodeCount = int32(len(i.shares))
	d.Status.NodeStatuses, omitted = i.roster()
	d.Status.Summary = i.summary(t, omitted)
	d.Status.Conditions = p.conditions(i, t)
	d.Record = d.Record || i.grown()
	d.Urgent = conditionsFlipped(i.object.Status.Conditions, d.Status.Conditions)
	d.Events = i.events(t, d)
}

// reportInvalid says what is wrong with a maintenance that cannot be understood.
// Nothing starts, and what was recorded before stays.
func (p *pass) reportInvalid(i *intent, d *MaintenanceDecision) {
	d.Status.ObservedGeneration = i.object.Generation
	d.Status.Summary = "invalid spec, nothing is done"
	d.Status.Conditions = p.invalidConditions(i)
	before := i.object.Status.Conditions
	d.Urgent = conditionsFlipped(before, d.Status.Conditions)
	if became(before, d.Status.Conditions, v1alpha1.ConditionBlocked, v1alpha1.ReasonInvalidSpec) {
		d.Events = append(d.Events, event.InvalidSpec(i.object, i.invalid.Error()))
	}
}

// tally is a maintenance in numbers.
type tally struct {
	nodes, drained, unknown             int
	pending, evacuating, retained, held int32
	fought                              int
	// cordoned are the nodes that hold their cordon.
	cordoned int
	// budgets are to be locked for the pods that stay, locked are.
	budgets, locked int
}

func (t tally) left() int32 { return t.pending + t.evacuating }

func (i *intent) tally() tally {
	t := tally{nodes: len(i.shares)}
	for _, one := range i.shares {
		t.pending += one.pending
		t.evacuating += one.evacuating
		t.retained += one.retained
		for _, b := range one.hindering {
			t.held += b.PodCount
		}
		t.cordoned += ones(one.site.cordon.change == nil && one.site.node.Spec.Unschedulable)
		t.fought += ones(one.site.cordon.fought)
		t.drained += ones(one.drained())
		t.unknown += ones(i.stage == v1alpha1.StageDrain && !one.site.known)
		if i.inPlace != nil {
			t.budgets += one.site.lock.needed
			t.locked += one.site.lock.taken
		}
	}
	return t
}

func ones(counts bool) int {
	if counts {
		return 1
	}
	return 0
}

// grown returns true if the target of some site is more than what the status has
// recorded for it.
func (i *intent) grown() bool {
	return i.stage == v1alpha1.StageDrain && slices.ContainsFunc(i.shares, func(one *share) bool {
		return !one.previous.set.Equal(one.site.target.set)
	})
}

// summary is the state in one short line.
func (i *intent) summary(t tally, omitted int) string {
	var words []string
	switch i.stage {
	case v1alpha1.StageIdle:
		words = append(words, count(t.nodes, "node")+" planned")
	case v1alpha1.StageCordon:
		words = append(words, fmt.Sprintf("%d/%d nodes cordoned", t.cordoned, t.nodes))
	case v1alpha1.StageComplete:
		words = append(words, "complete")
	default:
		words = append(words, fmt.Sprintf("%d/%d nodes drained", t.drained, t.nodes))
	}
	for _, part := range []struct {
		number int
		text   string
	}{
		{int(t.left()), count(t.left(), "pod") + " left"},
		{int(t.held), fmt.Sprintf("%d blocked", t.held)},
		{t.budgets - t.locked, count(t.budgets-t.locked, "budget") + " not locked"},
		{t.unknown, count(t.unknown, "node") + " not read"},
		{omitted, count(omitted, "node") + " not listed"},
	} {
		if part.number > 0 {
			words = append(words, part.text)
		}
	}
	return strings.Join(words, ", ")
}

// count is a number of things in words.
func count[N int | int32](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// events are what has become true since the observed status.
func (i *intent) events(t tally, d *MaintenanceDecision) []event.Event {
	m := i.object
	var events []event.Event
	if i.starts {
		events = append(events, event.StageStarted(m, i.stage, t.nodes))
	}
	if became(m.Status.Conditions, d.Status.Conditions, v1alpha1.ConditionDrained, v1alpha1.ReasonNoNodes) {
		events = append(events, event.NoNodes(m))
	}
	for _, one := range i.shares {
		events = append(events, one.drainEvents()...)
	}
	if became(m.Status.Conditions, d.Status.Conditions, v1alpha1.ConditionDrained, v1alpha1.ReasonDrained) {
		events = append(events, event.MaintenanceDrained(m, t.nodes))
	}
	return events
}

// drainEvents are what has become true of one site since it was last reported.
func (s *share) drainEvents() []event.Event {
	if s.intent.stage != v1alpha1.StageDrain {
		return nil
	}
	joined := s.observed == nil
	if joined && !s.previous.set.Empty() || !joined && strings.HasPrefix(s.observed.DrainMessage, s.message) {
		// Nothing is new but whose turn it is, or the status leaves the site out and
		// nobody knows.
		return nil
	}
	if older := s.forwarder(); older != nil && (joined || s.left > 0) {
		return []event.Event{event.FastForwarded(s.intent.object, s.site.node.Name, older.name())}
	}
	if !joined && s.done() {
		return []event.Event{event.NodeDrained(s.site.node, s.intent.name())}
	}
	return nil
}
