package maintenance

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/maintenance/deadline"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

const (
	maxCompletedNodes  = 256 // of spec.completedNodes
	maxGivenBackEvents = 100
)

// giveBack decides which nodes the deadline of a maintenance gives back: those that are not drained
// and never were. A node that was drained stays, because somebody may work on it. If none stays, the
// maintenance is complete, so that no later node joins it.
func (c *conclusion) giveBack(m *maintenance, d *MaintenanceDecision) *GiveBack {
	if m.stage != v1alpha1.StageDrain || m.deadline == nil || !m.deadline.GivesBack || d.Returned ||
		m.deadline.State(c.Now, m.began, c.ClockSkewed) != deadline.Came {
		return nil
	}
	late := slices.Clone(m.waiting)
	for _, one := range m.selections {
		if !c.mayBeDrained(one) {
			late = append(late, one)
		}
	}
	all := len(late) == len(m.selections)+len(m.waiting) || m.completeWhen != nil
	if !all {
		late = late[:min(len(late), max(0, maxCompletedNodes-len(m.object.Spec.CompletedNodes)))]
	}
	if len(late) == 0 {
		return nil
	}
	return m.giveBack(late, all)
}

// giveBack gives nodes back, which are all of the maintenance or some.
func (m *maintenance) giveBack(late []*selection, all bool) *GiveBack {
	names := make([]string, len(late))
	for i, one := range late {
		names[i] = one.node.name()
	}
	now := m.deadline.GiveBack(nil, m.object.UID, names)
	d := &GiveBack{
		Record: m.deadline.GiveBack(m.givenBack, m.object.UID, names).Text(),
		Events: []event.Event{event.NodesGivenBack(m.object, now.Message())},
	}
	for i, one := range late {
		if !all {
			d.Nodes = append(d.Nodes, v1alpha1.NodeReference{Name: names[i]})
		}
		if i < maxGivenBackEvents {
			d.Events = append(d.Events, event.NodeGivenBack(one.node.object, m.name(), m.deadline.Time))
		}
	}
	return d
}

// mayBeDrained returns false if a node is not drained, and certainly was not before: it may have
// been if its pods are unknown, or if a long status leaves it out.
func (c *conclusion) mayBeDrained(one *selection) bool {
	o, m, known := &c.nodes[one.node.index], one.maintenance, &one.maintenance.object.Status
	switch {
	case !o.read, o.emptied(one) && o.object.Spec.Unschedulable:
		return true
	case one.observed != nil && one.observed.DrainedTime != nil:
		return true
	case one.observed == nil && len(known.NodeStatuses) < int(known.NodeCount) && o.ledger.Lists(m.name()):
		return true
	}
	return handover.MarkedFor(o.object, m.name()) || !announcement.Since(o.object, v1alpha1.NodeDrained).IsZero()
}

// drainedTime returns when the node was drained for the first time; nil if it was not.
func (s *selection) drainedTime(drained bool, now time.Time) *metav1.Time {
	switch {
	case s.observed != nil && s.observed.DrainedTime != nil:
		return s.observed.DrainedTime
	case drained:
		at := metav1.NewTime(now).Rfc3339Copy()
		return &at
	}
	return nil
}

// newlyDrained returns true if a node is drained for the first time that a deadline would give back
// otherwise. That is recorded before anybody learns of it.
func (m *maintenance) newlyDrained(nodes []nodeStatus) bool {
	return m.deadline != nil && m.deadline.GivesBack && slices.ContainsFunc(nodes, func(s nodeStatus) bool {
		one := s.selection
		return s.DrainedTime != nil && (one.observed == nil || one.observed.DrainedTime == nil)
	})
}
