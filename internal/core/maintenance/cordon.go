package maintenance

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
)

// cordon is what becomes of the cordon of a node.
type cordon struct {
	change *CordonChange
	events []event.Event
	// uncordons are when somebody else made the node schedulable lately, fought is
	// true if that was too often, and calm when it is not any more.
	uncordons []metav1.Time
	fought    bool
	calm      time.Time
	// awaited is true if the node would be schedulable again if nobody else removed it.
	awaited bool
}

// cordonOf decides about the cordon of a node and what goes with it: which DaemonSet
// and static pods stay away, and to whom it is handed over. One write sets and takes away all of it. What somebody
// else has changed is put right.
func (t *targeted) cordonOf(o *outcome) cordon {
	var c cordon
	if !o.gone {
		c = t.heldCordon(o.node, t.shieldOf(o.node))
	}
	wanted, by := o.suppression(), o.handedOverBy()
	if c.change == nil && (wanted != suppressionOn(o.object) || !o.gone && !showsHandOver(o.object, by)) {
		c.change = &CordonChange{
			Unschedulable: o.object.Spec.Unschedulable,
			Ledger:        o.object.Annotations[v1alpha1.CordonAnnotation],
		}
	}
	if c.change != nil {
		c.change.DrainTargets, c.change.Suppress, c.change.HandedOverBy = wanted.targets, wanted.all, by
	}
	return c
}

// heldCordon is about the cordon itself. A node that somebody else removes is not made
// schedulable meanwhile; if it is kept in the end, that is done then.
func (t *targeted) heldCordon(n *node, s shield) cordon {
	if len(n.holders) > 0 && n.ledger != nil {
		return n.keptCordon(t.Now, s)
	}
	c := freeCordon(n, s)
	if c.change != nil && n.object.Spec.Unschedulable && !c.change.Unschedulable && foreigndrain.Removing(n.object) {
		return cordon{awaited: true}
	}
	return c
}

// freeCordon is about a node that nobody has held until now, or that nobody holds any more.
func freeCordon(n *node, s shield) cordon {
	if n.ledger == nil {
		return firstCordon(n, s)
	}
	return restored(n, s)
}

// firstCordon is about a node without a ledger.
func firstCordon(n *node, s shield) cordon {
	if len(n.holders) == 0 {
		return askedUncordon(n)
	}
	first := ledger{WasUnschedulable: n.object.Spec.Unschedulable, Holders: n.listedHolders(), Protected: s.recorded}
	c := cordon{change: &CordonChange{Unschedulable: true, Ledger: first.text(), Protection: s.changes}}
	if !n.object.Spec.Unschedulable {
		c.events = []event.Event{event.NodeCordoned(n.object, n.holders)}
	}
	return c
}

// askedUncordon makes a node schedulable that we never cordoned, because a
// maintenance went from Idle straight to Complete.
func askedUncordon(n *node) cordon {
	if !n.object.Spec.Unschedulable {
		return cordon{}
	}
	for _, one := range n.selections {
		if m := one.maintenance; m.asksUncordon() {
			return cordon{
				change: &CordonChange{Unschedulable: false},
				events: []event.Event{event.NodeUncordoned(n.object, m.name())},
			}
		}
	}
	return cordon{}
}

// asksUncordon returns true if an administrator has set stage Complete where
// nothing was begun. A deletion alone does not ask for that.
func (m *maintenance) asksUncordon() bool {
	if m.stage != v1alpha1.StageComplete || hasStarted(m.object, v1alpha1.StageCordon, v1alpha1.StageDrain) {
		return false
	}
	deleted := m.object.DeletionTimestamp
	return deleted == nil || slices.ContainsFunc(m.object.Status.StageStatuses, func(s v1alpha1.StageStatus) bool {
		return s.Name == v1alpha1.StageComplete && s.StartTimestamp.Before(deleted)
	})
}

// restored gives a node back that nobody holds any more. One that somebody has made
// schedulable in the meantime stays so, whatever it was before.
func restored(n *node, s shield) cordon {
	if n.ledger.Unknown {
		return cordon{
			change: &CordonChange{Unschedulable: n.ledger.back(n.object), Protection: s.changes},
			events: []event.Event{event.NodeLeftCordoned(n.object)},
		}
	}
	unschedulable := n.ledger.back(n.object)
	return cordon{
		change: &CordonChange{Unschedulable: unschedulable, Protection: s.changes},
		events: []event.Event{event.NodeRestored(n.object, unschedulable)},
	}
}

// keptCordon keeps a node cordoned for its holders.
func (n *node) keptCordon(now time.Time, s shield) cordon {
	c := cordon{uncordons: n.ledger.recent(now), events: s.events(n)}
	foreign := !n.object.Spec.Unschedulable
	if foreign {
		c.uncordons = append(c.uncordons, metav1.NewTime(now).Rfc3339Copy())
		c.uncordons = c.uncordons[max(0, len(c.uncordons)-rememberedUncordons):]
		c.events = append(c.events, event.ForeignUncordon(n.object, n.holders))
		for _, one := range n.selections {
			if one.maintenance.holds() {
				c.events = append(c.events, event.ForeignUncordonOf(one.maintenance.object, n.name()))
			}
		}
	}
	if c.fought = len(c.uncordons) > toleratedUncordons; c.fought {
		c.calm = c.uncordons[len(c.uncordons)-toleratedUncordons-1].Add(uncordonWindow)
	}
	if unreadable := n.ledger.unreadable; unreadable != nil {
		c.events = append(c.events, event.LedgerUnreadable(n.object, unreadable))
	} else if !foreign && slices.Equal(n.ledger.Holders, n.listedHolders()) && !s.differs {
		return c
	}
	next := ledger{
		// Who uncordons a node that was cordoned before wants it back schedulable. Where
		// nobody knows what it was, that is no answer.
		WasUnschedulable: n.ledger.WasUnschedulable && (n.ledger.Unknown || !foreign), Unknown: n.ledger.Unknown,
		Holders: n.listedHolders(), ForeignUncordons: c.uncordons, Protected: s.recorded,
	}
	c.change = &CordonChange{Unschedulable: true, Ledger: next.text(), Protection: s.changes}
	return c
}

// blocker says who fights over the cordon of the node.
func (c cordon) blocker(n *node) v1alpha1.Blocker {
	return v1alpha1.Blocker{
		Type:      v1alpha1.BlockerForeignUncordon,
		Object:    blocker.OfNode(n.object),
		SinceTime: &c.uncordons[0],
		Message: fmt.Sprintf("Somebody made node %s schedulable %d times in the last 10 minutes; it is cordoned again each time.",
			n.name(), len(c.uncordons)),
		Suggestion: command.Of("Find out who uncordons it and stop that, or complete the maintenance. The managers of its fields: kubectl get node %s -o yaml --show-managed-fields",
			n.name()),
	}
}
