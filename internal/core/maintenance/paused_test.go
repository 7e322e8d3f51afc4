package maintenance_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// While the drain for a Machine is paused no pod is asked to leave, and what was asked is
// withdrawn; the node stays cordoned and is not drained. Then the drain goes on.
func TestAPausedDrainAsksNoPodToLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	makeForMachine(m)
	w.run("one", 2, 0)
	w.pass()
	w.pass()
	if len(w.evacuations) != 2 {
		t.Fatalf("%d pods are asked to leave, want 2", len(w.evacuations))
	}
	m.Annotations["ebbtide.dev/bridge-paused"] = "true"
	w.pass()
	w.pass()
	if len(w.evacuations) > 0 || !w.find("one").Spec.Unschedulable {
		t.Errorf("%d pods are asked to leave, and the node is cordoned: %v", len(w.evacuations), w.find("one").Spec.Unschedulable)
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained); c.Reason == v1alpha1.ReasonDrained {
		t.Errorf("Drained is %+v with two pods left", c)
	}
	if s := m.Status.NodeStatuses[0]; s.PodsPendingEvacuation != 2 || s.DrainMessage != "Waiting for the Machine, whose drain is paused." {
		t.Errorf("the status is %+v", s)
	}
	delete(m.Annotations, "ebbtide.dev/bridge-paused")
	w.pass()
	if len(w.evacuations) != 2 {
		t.Errorf("%d pods are asked to leave after the pause, want 2", len(w.evacuations))
	}
}

// A person's maintenance of the same node drains it whatever becomes of the Machine, and one
// without a Machine has no such pause.
func TestAPauseHoldsOnlyTheDrainOfTheMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	makeForMachine(m)
	m.Annotations["ebbtide.dev/bridge-paused"] = "true"
	other := w.maintenance("other", drain, nil, "one")
	other.Annotations = map[string]string{"ebbtide.dev/bridge-paused": "true"}
	w.run("one", 2, 0)
	w.pass()
	w.pass()
	if len(w.evacuations) != 2 {
		t.Errorf("%d pods are asked to leave, want 2", len(w.evacuations))
	}
}
