package blocker

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/command"
)

// refusedByLock explains an eviction that a lock prevents. The lock may have gone or changed since.
func refusedByLock(f *Facts, answer string) v1alpha1.Blocker {
	b := v1alpha1.Blocker{Type: v1alpha1.BlockerPDBLocked, Message: answer}
	name := f.Evacuation.Status.RefusingBudgetName
	if name == "" {
		b.Suggestion = command.Of("See the budgets of the namespace: kubectl -n %s get poddisruptionbudgets", f.Pod.Namespace)
		return b
	}
	b.Object = budgetNamed(f.Pod.Namespace, name)
	for _, one := range f.Budgets.Applying(f.Pod) {
		if one.Name != name {
			continue
		}
		b.Object = OfBudget(one)
		// How long locks may hold is for those who honour them: this one was in force.
		hold, _ := budget.LockOf(one, f.Now, 0)
		if hold.Holder == "" {
			break
		}
		if since := hold.AcquiredAt; !since.IsZero() && !since.After(f.Now) {
			b.SinceTime = &metav1.Time{Time: since.Time}
		}
		b.Suggestion = Unlock(one, hold)
		return b
	}
	b.Suggestion = command.Of("See whether it is still locked: kubectl -n %s get poddisruptionbudget %s -o yaml", f.Pod.Namespace, name)
	return b
}

// Unlock returns how the lock of a budget goes, with the command that helps.
func Unlock(b *policyv1.PodDisruptionBudget, hold budget.Hold) string {
	maintenance, node, drain := hold.Drain()
	switch {
	case drain:
		return command.Of("It goes when node %s is back and its pods are ready. See how far its maintenance is: kubectl get nodemaintenance %s", node, maintenance)
	case hold.Unreadable != nil:
		return command.Of("It ends ten minutes after the last change of the budget. If it is not needed: kubectl -n %s annotate poddisruptionbudget %s %s-",
			b.Namespace, b.Name, v1alpha1.LockAnnotation)
	}
	return command.Of("It goes when its holder unlocks the budget, or at its end. If they agree: kubectl ebbtide unlock pdb/%s -n %s --force", b.Name, b.Namespace)
}
