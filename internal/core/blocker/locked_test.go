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

func TestLockedBudgetBlocks(t *testing.T) {
	const answer = "PodDisruptionBudget shop/web is locked by dba@example.com until 2026-03-01T09:00:00Z: defragmentation"
	byLock := by("web", refused(v1alpha1.BlockerPDBLocked, answer))
	want := func(since time.Duration) v1alpha1.Blocker {
		return blocks(v1alpha1.BlockerPDBLocked, seenBudget, since)
	}
	check(t, map[string]story{
		"its owner's":                        {facts(byLock, locked("all", "other", asItIs), locked("web", "dba@example.com", asItIs)), want(time.Hour)},
		"nobody says since when":             {facts(byLock, locked("web", "dba@example.com", func(l *budget.Lock) { l.AcquiredAt = metav1.Time{} })), want(time.Minute)},
		"since a time that is still to come": {facts(byLock, locked("web", "dba@example.com", func(l *budget.Lock) { l.AcquiredAt = *ago(-time.Hour) })), want(time.Minute)},
		"it may hold for longer than usual":  {facts(byLock, locked("web", "dba@example.com", func(l *budget.Lock) { l.AcquiredAt = *ago(10 * time.Hour) })), want(10 * time.Hour)},
		"a drain's":                          {facts(byLock, locked("web", budget.Holder("kernel", "node-two"), asItIs)), want(time.Hour)},
		"one that nobody can read":           {facts(byLock, annotated("web", "mine!")), want(time.Minute)},
		"the lock is gone by now":            {facts(byLock, budgetNamed("web", maxUnavailable(1))), want(time.Minute)},
		"the budget is gone by now":          {facts(byLock, locked("all", "other", asItIs)), blocks(v1alpha1.BlockerPDBLocked, goneBudget, time.Minute)},
		"nobody knows which budget":          {facts(refused(v1alpha1.BlockerPDBLocked, "no"), locked("web", "dba@example.com", asItIs)), blocks(v1alpha1.BlockerPDBLocked, v1alpha1.BlockerObject{}, time.Minute)},
	})
}
