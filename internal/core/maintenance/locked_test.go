package maintenance_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// Nobody is told of locks where what holds the site is not understood.
func TestAFrozenSiteWritesNoRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
	odd := w.maintenance("odd", v1alpha1.StageCordon, nil, "one")
	w.budget("db")
	w.pass()
	odd.Spec.Stage = "Odd"
	w.run("one", 1, 0, stays, label("app", "db"))
	odd.Spec.NodeSelector, odd.Spec.Stage = nil, v1alpha1.StageCordon
	w.expectRecord("while the other one cannot be understood", "one", "no record")
	if got, want := retainedLine(m), "one 0+0 Waiting for a maintenance of the node whose spec is invalid; then 1 budget will be locked. 1 retained"; got != want {
		t.Errorf("the node is %q, want %q", got, want)
	}
	odd.Spec.NodeSelector = named("one")
	w.expectRecord("now it can", "one", "m 300s: pod-0001(db) lock db")
}

func TestMaintenanceInPlaceIsDrainedWhenLocksAreHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
	w.budget("db")
	w.budget("web")
	w.run("one", 2, 0, stays, label("app", "db"))
	w.run("one", 1, 0, stays, label("app", "web"))
	other := w.run("one", 1, 0)[0]
	w.pass()
	w.expectLocks("a pod leaves", m, "Draining, False Draining, False NotBlocked, false")
	w.remove(other.UID)
	w.expectLocks("the record is written", m, "WaitingForLocks, False Draining, False NotBlocked, false")
	w.lockedByOwner(1)
	w.take("one", "db")
	w.expectLocks("an owner has the other one", m, "WaitingForLocks, False Blocked, True PDBLocked, false")
	w.budgets[1].Annotations = nil
	w.take("one", "web")
	w.expectLocks("both are locked", m, "Drained, True Drained, False NotBlocked, true")
	w.observe("one", func(status *v1alpha1.DrainRecordStatus) { status.Locks = status.Locks[1:] })
	w.expectLocks("a lock is lost", m, "WaitingForLocks, False Draining, False NotBlocked, false")
}

// expectLocks runs a pass and compares the state of node one, Drained, Blocked, and whether the node
// announces that it is drained.
func (w *world) expectLocks(what string, m *v1alpha1.NodeMaintenance, want string) {
	w.t.Helper()
	w.pass()
	got := fmt.Sprintf("%s, %s, %s, %t", m.Status.NodeStatuses[0].State, conditionOf(m, v1alpha1.ConditionDrained), conditionOf(m, v1alpha1.ConditionBlocked),
		nodeCondition(w.find("one"), v1alpha1.NodeDrained).Status == corev1.ConditionTrue)
	if got != want {
		w.t.Errorf("%s: it is %s, want %s", what, got, want)
	}
}

// lockedByOwner locks a budget for an hour.
func (w *world) lockedByOwner(b int) {
	metav1.SetMetaDataAnnotation(&w.budgets[b].ObjectMeta, v1alpha1.LockAnnotation, budget.Lock{
		Holder: "dba", Reason: "rebalancing", AcquiredAt: metav1.NewTime(w.now), ExpiresAt: metav1.NewTime(w.now.Add(time.Hour)),
	}.Write())
}
