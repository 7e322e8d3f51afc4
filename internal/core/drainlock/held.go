package drainlock

import (
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Held reports whether every budget that the record needs is locked and confirmed.
func Held(r *v1alpha1.DrainRecord) bool {
	if r.Status.ObservedGeneration != r.Generation {
		return false
	}
	for _, needed := range r.Spec.Budgets {
		if !confirmed(r, needed) {
			return false
		}
	}
	return true
}

func confirmed(r *v1alpha1.DrainRecord, budget v1alpha1.BudgetReference) bool {
	return slices.ContainsFunc(r.Status.Locks, func(lock v1alpha1.RecordedLock) bool {
		return lock.BudgetReference == budget && lock.ConfirmedTime != nil
	})
}

// GivenUp reports whether the record has given up to lock the budget, so that its
// pods do not stay. A record that does not exist has given up nothing.
func GivenUp(r *v1alpha1.DrainRecord, budget v1alpha1.BudgetReference) bool {
	return r != nil && slices.ContainsFunc(r.Status.GivenUp, func(one v1alpha1.GivenUpBudget) bool {
		return one.BudgetReference == budget
	})
}
