package drainlock

import (
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Keeping is the decision about the lock annotation of a budget.
type Keeping struct {
	// Remove removes the annotation under the resource version of the budget.
	Remove bool
	// Stray is true if the lock is removed because its node has no record, which must be confirmed
	// by a live read.
	Stray bool
	// Events become true with the removal. Without a removal they warn of an unreadable lock, once
	// for each content of the annotation.
	Events       []event.Event
	RequeueAfter time.Duration
}

// Keep decides whether the lock of a budget is removed. Of is the node that the lock names if it
// has a record or a promise, and empty otherwise: locks of such a node are left to it. See
// budget.LockOf for now and longest.
func Keep(b *policyv1.PodDisruptionBudget, of string, now time.Time, longest time.Duration) Keeping {
	if _, present := b.Annotations[v1alpha1.LockAnnotation]; !present {
		return Keeping{}
	}
	hold, locked := budget.LockOf(b, now, longest)
	_, node, drain := hold.Drain()
	switch {
	case drain && of == node:
		return Keeping{}
	case !locked:
		return Keeping{Remove: true, Events: []event.Event{event.LockEnded(b, ended(b, hold))}}
	case drain:
		return Keeping{Remove: true, Stray: true, Events: []event.Event{event.StrayLockRemoved(b, fmt.Sprintf(
			"Removed the lock of %s because node %s has no DrainRecord. %s", named(ReferenceTo(b)), excerpt.Of(node, maxQuote), sentence(hold.Describe(b))))}}
	case hold.Unreadable != nil:
		return Keeping{RequeueAfter: hold.Ends.Sub(now), Events: []event.Event{event.LockUnreadable(b, fmt.Sprintf(
			"%s If it is not needed, remove it: %s", sentence(hold.Describe(b)),
			command.Of("kubectl -n %s annotate poddisruptionbudget %s %s-", b.Namespace, b.Name, v1alpha1.LockAnnotation)))}}
	default:
		return Keeping{RequeueAfter: hold.Ends.Sub(now)}
	}
}

func ended(b *policyv1.PodDisruptionBudget, hold budget.Hold) string {
	if hold.Unreadable != nil {
		return fmt.Sprintf("Removed the unreadable lock of %s %s after the last change of the budget.", named(ReferenceTo(b)), budget.UnreadableLock)
	}
	return fmt.Sprintf("Removed the lock of %s by %s, which expired at %s.",
		named(ReferenceTo(b)), excerpt.Of(hold.Holder, maxQuote), hold.Ends.UTC().Format(time.RFC3339))
}
