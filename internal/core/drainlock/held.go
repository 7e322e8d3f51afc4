package drainlock

import (
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Held reports whether every budget that the record needs is locked and confirmed, or
// was until the node came back.
func Held(r *v1alpha1.DrainRecord) bool { return Returned(r) || Holds(r, r.Spec.Budgets) }

// Holds reports whether the promise is on the node, and every one of these budgets is
// locked and confirmed, and remains so. A record that asks for other pods than the status knows of does not
// matter: what was confirmed and is asked for is never given back, and what is not
// asked for is not confirmed any more before it is.
func Holds(r *v1alpha1.DrainRecord, budgets []v1alpha1.BudgetReference) bool {
	return stands(r) && !r.Spec.Emptying && !slices.ContainsFunc(budgets, func(b v1alpha1.BudgetReference) bool {
		return !confirmed(r, b) || !slices.Contains(r.Spec.Budgets, b)
	})
}

// stands reports whether a promise is on the node and was not taken back.
func stands(r *v1alpha1.DrainRecord) bool {
	boots := r.Status.Boots
	return boots != nil && boots.WithdrawnTime == nil && boots.RevokedTime == nil
}

// unconfirmed are the budgets that the record needs and has no confirmed lock of,
// in order.
func unconfirmed(r *v1alpha1.DrainRecord) []v1alpha1.BudgetReference {
	confirmed := map[v1alpha1.BudgetReference]bool{}
	for _, lock := range r.Status.Locks {
		confirmed[lock.BudgetReference] = lock.ConfirmedTime != nil && stands(r)
	}
	return slices.DeleteFunc(inOrder(r.Spec.Budgets), func(b v1alpha1.BudgetReference) bool { return confirmed[b] })
}

// confirmed reports whether the node was promised that it may go as far as the
// budget is concerned.
func confirmed(r *v1alpha1.DrainRecord, budget v1alpha1.BudgetReference) bool {
	return r != nil && slices.ContainsFunc(r.Status.Locks, func(lock v1alpha1.RecordedLock) bool {
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
