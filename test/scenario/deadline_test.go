package scenario

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// maintainToDeadline drains nodes until a time from now, and deletes what is left this long
// before it.
func (w *world) maintainToDeadline(name string, until, before time.Duration, nodes ...string) {
	w.t.Helper()
	m := w.planned(name, v1alpha1.StageDrain, named(nodes), nil)
	m.Spec.Deadline = &v1alpha1.Deadline{
		Time: metav1.NewTime(time.Now().Add(until)), OnDeadline: v1alpha1.DeadlineDelete, DeleteBeforeSeconds: int32(before.Seconds()),
	}
	w.create(m)
	w.t.Cleanup(func() { w.forget(name) })
}

// undeleted is true of a pod that nobody has deleted.
func undeleted(p *corev1.Pod) bool { return p.DeletionTimestamp == nil }

// Their budgets never let them go. Until the deadline is near nothing happens to them; then
// they are deleted one after the other, and what is beside them is left alone.
func TestLongPodsAreDeletedAtTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	low := w.pods(nodes[0], pod{name: "batch", priority: 100, neverEvicted: true})
	middle := w.pods(nodes[0], pod{name: "web", priority: 500, neverEvicted: true})
	high := w.pods(nodes[0], pod{name: "db", priority: 5000, neverEvicted: true})
	w.pods(nodes[0], pod{name: "kept", labels: map[string]string{v1alpha1.DrainLabel: "skip"}})
	w.pods(nodes[1], pod{name: "beside", neverEvicted: true})
	departures := w.watchDepartures(low, middle, high)

	w.maintainToDeadline("power-off", 60*time.Second, 30*time.Second, nodes[0])
	w.awaitCondition("power-off", v1alpha1.ConditionPastDeadline, "False", v1alpha1.ReasonDeadlineAhead)
	w.awaitBlocker("power-off", nodes[0], v1alpha1.BlockerPDBUnsatisfiable, "batch")
	for _, name := range []string{"batch", "web", "db"} {
		w.awaitPod(name, "running before the deadline", undeleted)
	}

	for _, name := range []string{"batch", "web", "db"} {
		w.awaitGone(name)
		w.awaitWarning("Pod", name, v1alpha1.EventPastDeadline, "Deleted past its disruption budgets with a grace period of 1 s: NodeMaintenance "+
			w.name("power-off")+" wants node "+nodes[0]+" to be empty by ")
	}
	departures.stop()
	if len(departures.overlaps) > 0 {
		t.Errorf("pods were deleted out of order: %v", departures.overlaps)
	}
	w.awaitDrained("power-off")
	w.awaitWarning("NodeMaintenance", w.name("power-off"), v1alpha1.EventPastDeadline, "deleted past their budgets, to be gone by ")
	w.awaitWarning("Node", nodes[0], v1alpha1.EventPastDeadline, "Deleted past their disruption budgets for the deadline of NodeMaintenance "+w.name("power-off")+": "+w.ns+"/batch.")
	w.awaitPod("kept", "running", undeleted)
	w.awaitPod("beside", "running", undeleted)
	w.awaitNoEvacuations()
}
