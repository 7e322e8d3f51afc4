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

// Keeping is what becomes of the lock that a budget bears, whoever took it.
type Keeping struct {
	// Remove removes the annotation, under the resource version of the budget.
	Remove bool
	// Stray is true if it is removed because its node has no record. That is to be
	// read from the API server before.
	Stray bool
	// Events become true with the removal. Without one they are warnings of a lock
	// that nobody can read, to be published once for each content of the annotation.
	Events []event.Event
	// RequeueAfter is when time alone changes this; 0 is never.
	RequeueAfter time.Duration
}

// Keep decides what becomes of the lock of a budget. Of is the node that its holder
// names if that has a record, or a promise of which a record is made again, and empty
// if it has none or the lock is not a drain's: what that node has locked is its own
// affair. Now and longest are those of budget.LockOf.
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
			"The lock of %s was removed, because node %s has no DrainRecord: %s", named(ReferenceTo(b)), excerpt.Of(node, longestText), sentence(hold.Describe(b))))}}
	case hold.Unreadable != nil:
		return Keeping{RequeueAfter: hold.Ends.Sub(now), Events: []event.Event{event.LockUnreadable(b, fmt.Sprintf(
			"%s If nobody needs it, remove it: %s", sentence(hold.Describe(b)),
			command.Of("kubectl -n %s annotate poddisruptionbudget %s %s-", b.Namespace, b.Name, v1alpha1.LockAnnotation)))}}
	default:
		return Keeping{RequeueAfter: hold.Ends.Sub(now)}
	}
}

func ended(b *policyv1.PodDisruptionBudget, hold budget.Hold) string {
	if hold.Unreadable != nil {
		return fmt.Sprintf("The lock of %s, which nobody can read, was removed %s after the budget was last changed.", named(ReferenceTo(b)), budget.UnreadableLock)
	}
	return fmt.Sprintf("The lock of %s by %s has ended at %s and was removed.",
		named(ReferenceTo(b)), excerpt.Of(hold.Holder, longestText), hold.Ends.UTC().Format(time.RFC3339))
}
