package maintenance

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

// decideHandOver decides how far the node is handed over to each of its drains, and to whom.
func (t *targeted) decideHandOver(o *outcome) {
	o.handings = make([]handover.Decision, len(o.drains))
	claims := make([]handover.Claim, len(o.drains))
	for place, one := range o.drains {
		if w := one.maintenance.completeWhen; w != nil {
			o.handings[place] = w.Decide(handover.Facts{
				Now: t.Now, ClockSkewed: t.ClockSkewed, Node: o.object, Ready: announcement.Find(o.object, corev1.NodeReady),
				Drained: o.emptied(one) && o.object.Spec.Unschedulable, Marked: handover.MarkedFor(o.object, one.maintenance.name()),
			})
		}
		claims[place] = handover.Claim{Name: one.maintenance.name(), Marked: o.handings[place].Marked}
		o.wake(t.Now, o.handings[place].Verdict.WakeTime)
	}
	var keep []string
	if o.unclear {
		keep = o.holders
	}
	o.handedOverTo = handover.Names(o.object, claims, keep)
}

// awaitsHandOver returns true if a maintenance is not Drained for the only reason that the
// node is not handed over yet: who sees Drained may reboot the node at once. Where the node
// was announced as drained before the maintenance came to have a completeWhen, it is not taken back.
func (o *outcome) awaitsHandOver(one *selection) bool {
	m := one.maintenance
	return m.stage == v1alpha1.StageDrain && m.completeWhen != nil && !o.handings[one.place].InForce &&
		announcement.Since(o.object, v1alpha1.NodeDrained).IsZero()
}

// awaitsText says what a node waits for that is drained and not handed over.
func (o *outcome) awaitsText(one *selection) string {
	if o.handings[one.place].Marked && !slices.Contains(o.handedOverTo, one.maintenance.name()) {
		return fmt.Sprintf("Waiting for the node to be handed over: %d other NodeMaintenances have it.", handover.MaxNames)
	}
	return "Waiting for the node to be handed over."
}

// handing is how far the only node of a maintenance in Drain with a completeWhen is handed over.
func (c *conclusion) handing(m *maintenance) handover.Decision {
	if len(m.selections) == 0 {
		return m.completeWhen.Absent()
	}
	one := m.selections[0]
	return c.nodes[one.node.index].handings[one.place]
}

// completeByItself writes down that the node is handed over and what has become of it,
// and completes the maintenance when it is back. What is still to be written down is not
// acted on. A maintenance that is not in Drain has nothing to compare.
func (c *conclusion) completeByItself(m *maintenance, d *MaintenanceDecision) {
	if m.stage != v1alpha1.StageDrain {
		return
	}
	var h handover.Decision
	if m.completeWhen != nil {
		h = c.handing(m)
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
