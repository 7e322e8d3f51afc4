package drainlock

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
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

// Keep decides what becomes of the lock of a budget. Of is the record of the node
// that its holder names, nil if there is none or the lock is not a drain's.
// Longest is how long a lock may hold; see budget.LockOf.
func Keep(b *policyv1.PodDisruptionBudget, of *v1alpha1.DrainRecord, now time.Time, longest time.Duration) Keeping {
	return Keeping{}
}
