package scenario

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// impatient is a maintenance that has given up to wait for a lock after this time.
func impatient(action v1alpha1.LockTimeoutAction, seconds int32) v1alpha1.InPlace {
	return v1alpha1.InPlace{ExpectedDowntimeSeconds: 120, LockTimeoutSeconds: seconds, OnLockTimeout: action}
}

// After the time is up a pod is drained as if it did not stay, which its budget still
// has to allow. The other one stays.
func TestLockTimeoutEvicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.guarded(node, "free", "closed")
	w.closeBudget("closed")
	w.maintainInPlace("upgrade", impatient(v1alpha1.LockTimeoutEvict, 2), node)

	w.awaitWarning("NodeMaintenance", w.name("upgrade"), "LockTimedOut", w.ns+"/closed ")
	w.awaitGivenUp(node, "closed", v1alpha1.LockTimeoutEvict)
	w.awaitEvacuation("closed")
	w.awaitPod("closed", "left alone while its budget allows nothing", available)
	w.openBudget("closed")

	w.awaitGone("closed")
	w.awaitDrained("upgrade")
	w.awaitPod("free", "left alone", available)
	w.awaitLock(w.holder("upgrade", node), "free")
	w.sayBack(node)
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(node)
}

// awaitGivenUp waits until the record of a node says that a budget is given up.
func (w *world) awaitGivenUp(node, budget string, action v1alpha1.LockTimeoutAction) {
	w.t.Helper()
	await(w, "budget "+budget+" given up", &v1alpha1.DrainRecord{}, node, func(r *v1alpha1.DrainRecord) bool {
		return len(r.Status.GivenUp) == 1 && r.Status.GivenUp[0].Name == budget && r.Status.GivenUp[0].Action == action
	})
}
