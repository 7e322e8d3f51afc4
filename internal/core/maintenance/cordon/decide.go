// Package cordon decides about the cordon of a node and what is written with it in one update:
// the ledger of what the node was, annotations for autoscalers, what keeps DaemonSet and static
// pods away, and the maintenances that the node is handed over to. The last holder restores the
// node. A ledger that cannot be read leaves it cordoned.
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

// Node holds what the cordon of a node depends on.
type Node struct {
	Object *corev1.Node
	// Ledger is nil if the node has none.
	Ledger *Ledger
	// Holders are the sorted names of the new holders, HeldBy the selecting ones, oldest first.
	Holders []string
	HeldBy  []*v1alpha1.NodeMaintenance
	// Unclear is true if an invalid maintenance holds the node, so nothing is removed.
	Unclear bool
	// UncordonedBy names the maintenance that uncordons a node without a ledger; empty if none.
	UncordonedBy string
	// Protect are the annotations that keep autoscalers from removing the node while it is held.
	Protect      []string
	Suppression  Suppression
	HandedOverTo []string // sorted names
}

// Change holds the wanted state of a node, written in one update under its resource version.
type Change struct {
	Unschedulable bool
	// Ledger is the wanted value of v1alpha1.CordonAnnotation; empty removes it.
	Ledger string
	// DrainTargets is the new v1alpha1.DrainTargetsAnnotation and sets its label; empty removes
	// both.
	DrainTargets string
	// Suppress is true if the node has to bear v1alpha1.DaemonSetTaint.
	Suppress bool
	// HandedOverBy is the new v1alpha1.HandedOverByAnnotation and sets its label; empty removes
	// both.
	HandedOverBy string
	// Protection holds the changed annotations of autoscalers, by key; nil removes one.
	Protection map[string]*string
}

// Decision holds what is done to the cordon of a node.
type Decision struct {
	Change *Change
	Events []event.Event
	// Awaited is true if the node becomes schedulable unless another controller removes it.
	Awaited bool
	// Blocker is set while another client keeps uncordoning the node, at most until Calm.
	Blocker *v1alpha1.Blocker
	Calm    time.Time
}

// Decide decides about the cordon of a node, and undoes changes of others.
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

// decide decides about the cordon itself. While another controller removes the node, it is not
// made schedulable; if it is kept in the end, that is done then.
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

// uncordon makes a node schedulable that we never cordoned, for a maintenance.
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

func begin(n *Node, p protected) Decision {
	first := Ledger{WasUnschedulable: n.Object.Spec.Unschedulable, Holders: n.Ledger.name(n.Holders), Protected: p.recorded}
	d := Decision{Change: &Change{Unschedulable: true, Ledger: first.text(), Protection: p.changes}}
	if !n.Object.Spec.Unschedulable {
		d.Events = []event.Event{event.NodeCordoned(n.Object, n.Holders)}
	}
	return d
}

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
		// A user who uncordons a node that was cordoned before wants it back schedulable, unless
		// it is unknown what it was.
		WasUnschedulable: n.Ledger.WasUnschedulable && (n.Ledger.Unknown || !foreign), Unknown: n.Ledger.Unknown,
		Holders: n.Ledger.name(n.Holders), ForeignUncordons: uncordons, Protected: p.recorded,
	}
	d.Change = &Change{Unschedulable: true, Ledger: next.text(), Protection: p.changes}
	return d
}

func foughtOver(node *corev1.Node, uncordons []metav1.Time) *v1alpha1.Blocker {
	return &v1alpha1.Blocker{
		Type:      v1alpha1.BlockerForeignUncordon,
		Object:    blocker.OfNode(node),
		SinceTime: &uncordons[0],
		Message: fmt.Sprintf("Node %s was uncordoned %d times in the last 10 minutes and is cordoned again each time.",
			node.Name, len(uncordons)),
		Suggestion: command.Of("Find out who uncordons it and stop that, or complete the maintenance. The managers of its fields: kubectl get node %s -o yaml --show-managed-fields",
			node.Name),
	}
}
