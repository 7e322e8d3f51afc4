package maintenance

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

func (t *targeted) decideHandOver(o *outcome) {
	o.handovers = make([]handover.Decision, len(o.drains))
	claims := make([]handover.Claim, len(o.drains))
	for place, one := range o.drains {
		if one.maintenance.completeWhen != nil {
			o.handovers[place] = t.handOver(one.maintenance, o.node, o.emptied(one) && o.object.Spec.Unschedulable)
		}
		claims[place] = handover.Claim{Name: one.maintenance.name(), Marked: o.handovers[place].Marked}
		o.wake(t.Now, o.handovers[place].Verdict.WakeTime)
	}
	var keep []string
	if o.unclear {
		keep = o.holders
	}
	o.handedOverTo = handover.Names(o.object, claims, keep)
}

func (s *observation) handOver(m *maintenance, n *node, drained bool) handover.Decision {
	return m.completeWhen.Decide(handover.Facts{
		Now: s.Now, ClockSkewed: s.ClockSkewed, Node: n.object, Ready: podclass.NodeCondition(n.object, corev1.NodeReady),
		Drained: drained, Marked: handover.MarkedFor(n.object, m.name()),
	})
}

// awaitsHandOver returns true if a maintenance is not Drained only because the node is not handed
// over yet: an administrator who sees Drained may reboot the node at once. If the node was
// announced as drained before the maintenance got a completeWhen, it stays Drained.
func (o *outcome) awaitsHandOver(one *selection) bool {
	m := one.maintenance
	return m.stage == v1alpha1.StageDrain && m.completeWhen != nil && !o.handovers[one.place].InForce &&
		announcement.Since(o.object, v1alpha1.NodeDrained).IsZero()
}

func (o *outcome) handOverText(one *selection) string {
	if o.handovers[one.place].Marked && !slices.Contains(o.handedOverTo, one.maintenance.name()) {
		return fmt.Sprintf("Waiting for the node to be handed over: %d other NodeMaintenances have it.", handover.MaxNames)
	}
	return "Waiting for the node to be handed over."
}

func (c *conclusion) handoverOf(m *maintenance) handover.Decision {
	switch {
	case len(m.waiting) > 0:
		// A node that was handed over and created again may be back.
		return c.handOver(m, m.waiting[0].node, false)
	case len(m.selections) == 0:
		return m.completeWhen.Absent()
	}
	one := m.selections[0]
	return c.nodes[one.node.index].handovers[one.place]
}

// completeAutomatically records the hand-over, and completes the maintenance once the node is back.
func (c *conclusion) completeAutomatically(m *maintenance, d *MaintenanceDecision) {
	if m.stage != v1alpha1.StageDrain {
		return
	}
	var h handover.Decision
	if m.completeWhen != nil {
		h = c.handoverOf(m)
	}
	wanted := h.Record.Text()
	if present, is := m.object.Annotations[v1alpha1.HandedOverAnnotation]; wanted != present || (wanted != "") != is {
		d.HandOver = &wanted
		return
	}
	if h.Verdict.Returned {
		d.Complete, d.Returned, d.Record = true, true, true
		d.CompleteEvents = []event.Event{event.CompletedByItself(m.object, h.Verdict.Message)}
	}
}
