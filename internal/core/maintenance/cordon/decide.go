// Package cordon decides about the cordon of a node and what is written with it in one update:
// the ledger of what the node was, annotations for autoscalers, what keeps DaemonSet and static
// pods away, and to which maintenances the node is handed over.
//
// The last holder restores the node. A ledger that cannot be read leaves it cordoned.
package cordon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
)

// Node is a node as far as its cordon is concerned.
type Node struct {
	// Object is the node as it was observed.
	Object *corev1.Node
	// Ledger is what ReadLedger returns for the node; nil if it has none.
	Ledger *Ledger
	// Holders are the sorted names of the maintenances that hold the node from now on, HeldBy
	// those of them that select it, oldest first.
	Holders []string
	HeldBy  []*v1alpha1.NodeMaintenance
	// Unclear is true if a maintenance holds the node whose spec is not understood: what it
	// wants is unknown, so nothing of it is removed.
	Unclear bool
	// UncordonedBy is the name of a maintenance for which a node without a ledger becomes
	// schedulable; empty if there is none.
	UncordonedBy string
	// Protect are the annotations by which autoscalers leave the node alone while it is held.
	Protect []string
	// Suppression is which pods have to stay away.
	Suppression Suppression
	// HandedOverTo are the sorted names of the maintenances that have the node.
	HandedOverTo []string
}

// Change is the wanted cordon of a node together with its ledger and what keeps DaemonSet
// and static pods away. All are written in one update under the node's resource version.
type Change struct {
	// Unschedulable is the wanted spec.unschedulable.
	Unschedulable bool
	// Ledger is the wanted value of v1alpha1.CordonAnnotation; empty removes it.
	Ledger string
	// DrainTargets is the wanted value of v1alpha1.DrainTargetsAnnotation, with which
	// v1alpha1.DaemonSetDrainLabel goes; empty removes it.
	DrainTargets string
	// Suppress is true if the node has to bear v1alpha1.DaemonSetTaint.
	Suppress bool
	// HandedOverBy is the wanted value of v1alpha1.HandedOverByAnnotation; empty removes it.
	// v1alpha1.HandedOverLabel goes with it.
	HandedOverBy string
	// Protection are the wanted values of annotations by which autoscalers leave the node
	// alone, by key; nil removes one. Those that it does not have stay as they are.
	Protection map[string]*string
}

// Decision is what becomes of the cordon of a node.
type Decision struct {
	// Change is nil if nothing is written. Events become true with it.
	Change *Change
	Events []event.Event
	// Awaited is true if the node would be schedulable again if nobody else removed it.
	Awaited bool
	// Blocker is not nil while others keep uncordoning the node. That is over at Calm; zero
	// is not by time alone.
	Blocker *v1alpha1.Blocker
	Calm    time.Time
}

// Decide decides about the cordon of a node. What others have changed is put right.
func Decide(n Node, now time.Time) Decision {
	d := decide(&n, now)
	targets, handedOver := n.Suppression, strings.Join(n.HandedOverTo, ",")
	if d.Change == nil && (targets != suppressionOn(n.Object) || !showsHandOver(n.Object, handedOver)) {
		d.Change = &Change{Unschedulable: n.Object.Spec.Unschedulable, Ledger: n.Object.Annotations[v1alpha1.CordonAnnotation]}
	}
	if d.Change != nil {
		d.Change.DrainTargets, d.Change.Suppress, d.Change.HandedOverBy = targets.targets, targets.all, handedOver
	}
	return d
}

// decide is about the cordon itself. A node that somebody else removes is not made
// schedulable meanwhile; if it is kept in the end, that is done then.
func decide(n *Node, now time.Time) Decision {
	p := protect(n)
	switch {
	case n.Ledger == nil && len(n.Holders) == 0:
		return uncordon(n)
	case n.Ledger == nil:
		return begin(n, p)
	case len(n.Holders) > 0:
		return keep(n, p, now)
	}
	unschedulable := n.Ledger.back(n.Object)
	switch {
	case n.Object.Spec.Unschedulable && !unschedulable && foreigndrain.Removing(n.Object):
		return Decision{Awaited: true}
	case n.Ledger.Unknown:
		return Decision{
			Change: &Change{Unschedulable: unschedulable, Protection: p.changes},
			Events: []event.Event{event.NodeLeftCordoned(n.Object)},
		}
	}
	return Decision{
		Change: &Change{Unschedulable: unschedulable, Protection: p.changes},
		Events: []event.Event{event.NodeRestored(n.Object, unschedulable)},
	}
}

// uncordon makes a node schedulable that we never cordoned, if a maintenance asks for that.
func uncordon(n *Node) Decision {
	switch {
	case !n.Object.Spec.Unschedulable || n.UncordonedBy == "":
		return Decision{}
	case foreigndrain.Removing(n.Object):
		return Decision{Awaited: true}
	}
	return Decision{
		Change: &Change{Unschedulable: false},
		Events: []event.Event{event.NodeUncordoned(n.Object, n.UncordonedBy)},
	}
}

// begin cordons a node that nobody has held until now.
func begin(n *Node, p protected) Decision {
	first := Ledger{WasUnschedulable: n.Object.Spec.Unschedulable, Holders: n.Ledger.name(n.Holders), Protected: p.recorded}
	d := Decision{Change: &Change{Unschedulable: true, Ledger: first.text(), Protection: p.changes}}
	if !n.Object.Spec.Unschedulable {
		d.Events = []event.Event{event.NodeCordoned(n.Object, n.Holders)}
	}
	return d
}

// keep keeps a node cordoned for its holders.
func keep(n *Node, p protected, now time.Time) Decision {
	var d Decision
	for _, key := range p.answered {
		d.Events = append(d.Events, event.ScaleDownAllowed(n.Object, key))
	}
	uncordons, foreign := n.Ledger.recent(now), !n.Object.Spec.Unschedulable
	if foreign {
		uncordons = append(uncordons, metav1.NewTime(now).Rfc3339Copy())
		uncordons = uncordons[max(0, len(uncordons)-rememberedUncordons):]
		d.Events = append(d.Events, event.ForeignUncordon(n.Object, n.Holders))
		for _, m := range n.HeldBy {
			d.Events = append(d.Events, event.ForeignUncordonOf(m, n.Object.Name))
		}
	}
	if fought := len(uncordons) - toleratedUncordons; fought > 0 {
		d.Calm = uncordons[fought-1].Add(uncordonWindow)
		d.Blocker = foughtOver(n.Object, uncordons)
	}
	if unreadable := n.Ledger.unreadable; unreadable != nil {
		d.Events = append(d.Events, event.LedgerUnreadable(n.Object, unreadable))
	} else if !foreign && slices.Equal(n.Ledger.Holders, n.Ledger.name(n.Holders)) && !p.differs {
		return d
	}
	next := Ledger{
		// Who uncordons a node that was cordoned before wants it back schedulable. Where
		// nobody knows what it was, that is no answer.
		WasUnschedulable: n.Ledger.WasUnschedulable && (n.Ledger.Unknown || !foreign), Unknown: n.Ledger.Unknown,
		Holders: n.Ledger.name(n.Holders), ForeignUncordons: uncordons, Protected: p.recorded,
	}
	d.Change = &Change{Unschedulable: true, Ledger: next.text(), Protection: p.changes}
	return d
}

// foughtOver says who fights over the cordon of the node.
func foughtOver(node *corev1.Node, uncordons []metav1.Time) *v1alpha1.Blocker {
	return &v1alpha1.Blocker{
		Type:      v1alpha1.BlockerForeignUncordon,
		Object:    blocker.OfNode(node),
		SinceTime: &uncordons[0],
		Message: fmt.Sprintf("Somebody made node %s schedulable %d times in the last 10 minutes; it is cordoned again each time.",
			node.Name, len(uncordons)),
		Suggestion: command.Of("Find out who uncordons it and stop that, or complete the maintenance. The managers of its fields: kubectl get node %s -o yaml --show-managed-fields",
			node.Name),
	}
}
