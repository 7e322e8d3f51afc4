package drainlock

import (
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Held reports whether all needed budgets are locked, or were until the node came back.
func Held(r *v1alpha1.DrainRecord) bool { return Returned(r) || Holds(r, r.Spec.Budgets) }

// Holds reports whether the promise is on the node, and all of these budgets are locked and
// confirmed and stay so. The record may ask for other pods than its status covers: what is asked
// for and confirmed is never released, and what is no longer asked for loses its confirmation
// first.
func Holds(r *v1alpha1.DrainRecord, budgets []v1alpha1.BudgetReference) bool {
	return hasPromise(r) && !r.Spec.Emptying && !slices.ContainsFunc(budgets, func(b v1alpha1.BudgetReference) bool {
		return !confirmed(r, b) || !slices.Contains(r.Spec.Budgets, b)
	})
}

func hasPromise(r *v1alpha1.DrainRecord) bool {
	boots := r.Status.Boots
	return boots != nil && boots.WithdrawnTime == nil && boots.RevokedTime == nil
}

// unconfirmed returns the budgets without a confirmed lock, in order.
func unconfirmed(r *v1alpha1.DrainRecord) []v1alpha1.BudgetReference {
	confirmed := map[v1alpha1.BudgetReference]bool{}
	for _, lock := range r.Status.Locks {
		confirmed[lock.BudgetReference] = lock.ConfirmedTime != nil && hasPromise(r)
	}
	return slices.DeleteFunc(inOrder(r.Spec.Budgets), func(b v1alpha1.BudgetReference) bool { return confirmed[b] })
}

func confirmed(r *v1alpha1.DrainRecord, budget v1alpha1.BudgetReference) bool {
	return r != nil && slices.ContainsFunc(r.Status.Locks, func(lock v1alpha1.RecordedLock) bool {
		return lock.BudgetReference == budget && lock.ConfirmedTime != nil
	})
}

// GivenUp reports whether the record gave up locking the budget, so that its pods do not stay. A
// missing record has given up nothing.
func GivenUp(r *v1alpha1.DrainRecord, budget v1alpha1.BudgetReference) bool {
	return r != nil && slices.ContainsFunc(r.Status.GivenUp, func(one v1alpha1.GivenUpBudget) bool {
		return one.BudgetReference == budget
	})
}
