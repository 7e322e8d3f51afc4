package nodemaintenance

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

// planning is a manager that counts its plans.
func planning(w *world, plans *int) *reconciler {
	r := w.manager()
	foresee := r.foresee
	r.foresee = func(s preflight.Snapshot) map[string]v1alpha1.NodeMaintenanceNodeStatus {
		*plans++
		return foresee(s)
	}
	return r
}

func idleMaintenance(name string) *v1alpha1.NodeMaintenance {
	m := aMaintenance(name, "old")
	m.Spec.Stage = v1alpha1.StageIdle
	return m
}

// says is what the status of a maintenance says of node one.
func (w *world) says(name string) string {
	w.t.Helper()
	status := w.maintenance(name).Status.NodeStatuses[0]
	return fmt.Sprintf("%s %d to leave, %d stay, %d blockers", status.DrainMessage, status.PodsPendingEvacuation, status.PodsRetained, len(status.Blockers))
}

// However often pods change, a plan is made once in a while, and the last change is seen.
func TestAPlanIsMadeOnceInAWhile(t *testing.T) {
	t.Parallel()
	pods := []*corev1.Pod{aPod("web-1", "one"), aPod("web-2", "one")}
	w := newWorld(t, idleMaintenance("upgrade"), aNode("one"), pods[0], pods[1])
	made := 0
	r := planning(w, &made)
	w.reconcile(r)
	if got, want := w.says("upgrade"), "2 pods would leave. 2 to leave, 0 stay, 0 blockers"; got != want || made != 1 {
		t.Errorf("after %d plans the status says %q, want %q after one", made, got, want)
	}
	if node := w.node("one"); node.Spec.Unschedulable || len(w.evacuations()) > 0 {
		t.Errorf("something was done to the node: %+v", node)
	}

	w.must(w.api.Delete(t.Context(), pods[1]))
	for i := range 200 {
		now := changed(pods[0], func(p *corev1.Pod) { p.Labels = map[string]string{"try": fmt.Sprint(i)} })
		due, concerned := r.podMatters(pods[0], now)
		r.schedule.touch(w.clock.Now(), due, concerned...)
		r.replan(inNamespace("shop"))
		w.clock.Step(100 * time.Millisecond)
		w.must(runDue(t.Context(), r, w.clock))
	}
	if made != 1 {
		t.Errorf("%d plans were made in 20 seconds, want the first one only", made)
	}
	w.clock.Step(planInterval)
	w.must(runDue(t.Context(), r, w.clock))
	if got, want := w.says("upgrade"), "1 pod would leave. 1 to leave, 0 stay, 0 blockers"; got != want || made != 2 {
		t.Errorf("after %d plans the status says %q, want %q after two", made, got, want)
	}
	if next := w.nextDue(r); next != 0 {
		t.Errorf("the next pass is due in %s, but nothing has changed", next)
	}
	if r.plans.forget("upgrade"); r.plans.has("one") || len(r.plans.in) > 0 {
		t.Error("a plan that is forgotten is still indexed")
	}
}

// A plan that cannot be made stops nothing, and is made later.
func TestAPlanThatFailsStopsNothing(t *testing.T) {
	t.Parallel()
	drained := aMaintenance("drained", "old")
	w := newWorld(t, idleMaintenance("upgrade"), drained, aNode("one"), aPod("web-1", "one"))
	r := w.manager()
	foresee := r.foresee
	r.foresee = func(preflight.Snapshot) map[string]v1alpha1.NodeMaintenanceNodeStatus { panic("a defect") }
	w.reconcile(r)
	if len(w.evacuations()) != 1 {
		t.Errorf("%d evacuations are asked for, want that of the drain", len(w.evacuations()))
	}
	r.foresee = foresee
	w.clock.Step(planInterval)
	w.must(runDue(t.Context(), r, w.clock))
	if got, want := w.maintenance("upgrade").Status.NodeStatuses[0].DrainMessage, "1 pod would leave."; got != want {
		t.Errorf("the status says %q, want %q", got, want)
	}
}
