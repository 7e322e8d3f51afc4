package drainlock

import (
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// Settle limits how long an eviction may still land that was admitted before a lock was taken. It
// is the timeout of the webhook.
const Settle = 2 * time.Second

// Asks reports whether the record asks for the lock of the budget, holds it or has given it up.
func Asks(r *v1alpha1.DrainRecord, b *policyv1.PodDisruptionBudget) bool {
	this := ReferenceTo(b)
	return slices.Contains(r.Spec.Budgets, this) || GivenUp(r, this) ||
		slices.ContainsFunc(r.Status.Locks, func(lock v1alpha1.RecordedLock) bool { return lock.BudgetReference == this })
}

// Concerns reports whether a decision on the record depends on the budget: the record asks for it,
// or it bears a lock of the node, expired or not.
func Concerns(r *v1alpha1.DrainRecord, b *policyv1.PodDisruptionBudget) bool {
	return Asks(r, b) || Locker(b) == r.Name
}

// Locker returns the node whose drain has locked a budget, expired or not; empty if none has.
func Locker(b *policyv1.PodDisruptionBudget) string {
	hold, _ := budget.LockOf(b, time.Time{}, 0)
	return locker(hold)
}

func locker(hold budget.Hold) string {
	_, node, _ := hold.Drain()
	return node
}

// NeedsLive reports whether budgets and then pods must be read from the API server, because a lock
// waits to be confirmed.
func NeedsLive(r *v1alpha1.DrainRecord, now time.Time) bool {
	return !r.Spec.Complete && slices.ContainsFunc(r.Status.Locks, func(lock v1alpha1.RecordedLock) bool {
		return lock.ConfirmedTime == nil && !now.Before(lock.AcquiredTime.Add(Settle)) && slices.Contains(r.Spec.Budgets, lock.BudgetReference)
	})
}
