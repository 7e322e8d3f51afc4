package maintenance_test

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
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

// Where pods are not known, nothing is concluded from a record.
func TestUnknownPodsAreNotHeld(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	w.take("one", "db")
	w.pass()
	w.passKnowing(false)
	if got, want := retainedLine(m), "one 0+0 Waiting for the pods of the node to be read. 0 retained"; got != want || isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Errorf("the node is %q and Drained %v, want %q and false", got, isTrue(m.Status.Conditions, v1alpha1.ConditionDrained), want)
	}
}

// A pod that somebody else removes keeps the locks that are missing from being
// taken, so nobody is drained by leaving them out.
func TestALockThatHasToWaitIsMissing(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	w.runners.DaemonSets = true
	m.Spec.DrainDepth = v1alpha1.PodTypeDefault
	w.take("one", "db")
	w.pass()
	if !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Fatalf("the maintenance is %+v, want it Drained", m.Status)
	}
	w.maintenance("deep", drain, nil, "one").Spec.InPlace = m.Spec.InPlace
	w.budget("web")
	w.run("one", 1, 0, stays, label("app", "web"))
	agent := w.run("one", 1, 0, ofDaemonSet)[0]
	w.expectRecord("the agent leaves first", "one", "m 300s: pod-0001(db) pod-0002(web) lock db")
	w.take("one")
	w.pass()
	if got, want := retainedLine(m), "one 0+0 Waiting for the pods that leave for deep; then 2 budgets will be locked. 3 retained"; got != want {
		t.Errorf("the node is %q, want %q", got, want)
	}
	if isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Error("the maintenance is Drained although a pod stays whose budget is not locked")
	}
	w.remove(agent.UID)
	w.expectRecord("then the new one is locked, too", "one", "m 300s: pod-0001(db) pod-0002(web) lock db web")
}
