package blocker_test

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// locked is a budget with a lock, for half an hour since an hour ago.
func locked(name, holder string, change func(*budget.Lock)) func(*known) {
	lock := budget.Lock{Holder: holder, Reason: "defragmentation", AcquiredAt: *ago(time.Hour), ExpiresAt: *ago(-time.Hour)}
	change(&lock)
	return annotated(name, lock.Write())
}

func annotated(name, text string) func(*known) {
	return budgetNamed(name, func(b *policyv1.PodDisruptionBudget) {
		b.CreationTimestamp = *ago(2 * time.Minute)
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.LockAnnotation, text)
	})
}

func asItIs(*budget.Lock) {}

func TestALockRefuses(t *testing.T) {
	const answer = "PodDisruptionBudget shop/web is locked by dba@example.com until 2026-03-01T09:00:00Z: defragmentation"
	byLock := by("web", refused(v1alpha1.BlockerPDBLocked, answer))
	want := func(since time.Duration, suggestion string) v1alpha1.Blocker {
		return v1alpha1.Blocker{
			Type: v1alpha1.BlockerPDBLocked, Object: seenBudget, PodCount: 1, SinceTime: ago(since), Message: answer, Suggestion: suggestion,
		}
	}
	vanished := want(time.Minute, "See whether it is still locked: kubectl -n shop get poddisruptionbudget web -o yaml")
	vanished.Object = goneBudget
	const owners = "It goes when its holder unlocks the budget, or at its end. If they agree: kubectl ebbtide unlock pdb/web -n shop --force"
	check(t, map[string]story{
		"its owner's": {facts(byLock, locked("all", "other", asItIs), locked("web", "dba@example.com", asItIs)), want(time.Hour, owners)},
		"nobody says since when": {
			facts(byLock, locked("web", "dba@example.com", func(l *budget.Lock) { l.AcquiredAt = metav1.Time{} })), want(time.Minute, owners),
		},
		"since a time that is still to come": {
			facts(byLock, locked("web", "dba@example.com", func(l *budget.Lock) { l.AcquiredAt = *ago(-time.Hour) })), want(time.Minute, owners),
		},
		"it may hold for longer than usual": {
			facts(byLock, locked("web", "dba@example.com", func(l *budget.Lock) { l.AcquiredAt = *ago(10 * time.Hour) })), want(10*time.Hour, owners),
		},
		"a drain's": {
			facts(byLock, locked("web", budget.Holder("kernel", "node-two"), asItIs)),
			want(time.Hour, "It goes when node node-two is back and its pods are ready. See how far its maintenance is: kubectl get nodemaintenance kernel"),
		},
		"one that nobody can read": {
			facts(byLock, annotated("web", "mine!")),
			want(time.Minute, "It ends ten minutes after the budget was last changed. If nobody needs it: "+
				"kubectl -n shop annotate poddisruptionbudget web ebbtide.dev/lock-"),
		},
		"the lock is gone by now":   {facts(byLock, budgetNamed("web", maxUnavailable(1))), want(time.Minute, vanished.Suggestion)},
		"the budget is gone by now": {facts(byLock, locked("all", "other", asItIs)), vanished},
		"nobody knows which budget": {
			facts(refused(v1alpha1.BlockerPDBLocked, "no"), locked("web", "dba@example.com", asItIs)),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerPDBLocked, PodCount: 1, SinceTime: ago(time.Minute), Message: "no",
				Suggestion: "See the budgets of the namespace: kubectl -n shop get poddisruptionbudgets",
			},
		},
	})
}
