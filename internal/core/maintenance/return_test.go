package maintenance_test

import (
	"slices"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// No event tells that a pod has outlived its grace period. So the pass that sees it
// terminate says when to look again: at the first moment that finds it overdue.
func TestAPodThatOutlivesItsGraceIsLookedAtAfterThatMoment(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	pods := w.run("one", 2, 0)
	w.pass()
	pods[0].DeletionTimestamp = metaTime(w.now.Add(30 * time.Second))
	pods[1].DeletionTimestamp = metaTime(w.now.Add(40 * time.Second))
	overdue := func() bool {
		return slices.ContainsFunc(m.Status.NodeStatuses[0].Blockers, func(b v1alpha1.Blocker) bool {
			return b.Type == v1alpha1.BlockerTerminatingGrace
		})
	}
	wait := w.pass().RequeueAfter
	if overdue() || wait < 30*time.Second || wait >= 50*time.Second {
		t.Fatalf("overdue is %v and the next pass is due in %s; want false, and soon after the first deadline in 30s", overdue(), wait)
	}
	due := w.now.Add(wait)
	w.now = due.Add(-time.Second)
	if again := w.pass().RequeueAfter; overdue() || again != time.Second {
		t.Errorf("a second before, overdue is %v and the next pass is due in %s; want false and 1s", overdue(), again)
	}
	w.now = due
	if again := w.pass().RequeueAfter; !overdue() || again != 10*time.Second {
		t.Errorf("then overdue is %v and the next pass is due in %s; want true, and 10s for the second pod", overdue(), again)
	}
	w.now = due.Add(10 * time.Second)
	if again := w.pass().RequeueAfter; again != 0 {
		t.Errorf("when both are overdue the next pass is due in %s, want never", again)
	}
}
