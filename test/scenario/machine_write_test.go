package scenario

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Machines that wait, each in another step, are not written to: not while their
// evictions are refused, and not for the time that passes.
func TestLongMachinesThatWaitAreNotWritten(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	stops := w.inEveryStep()
	timed := w.runningAs("timed", stays(), func(m *v1alpha1.Machine) { m.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(20)) })
	w.pods(timed, pod{name: "timed", neverEvicted: true})
	w.deleteMachines(timed)
	w.awaitSays(timed, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonDraining, "Cannot evict pod")

	var mu sync.Mutex
	written := map[string]int{}
	var machines v1alpha1.MachineList
	w.must("list machines", w.client.List(w.ctx, &machines, client.InNamespace(w.ns)))
	follower := w.cluster.Follow(t, &machines, func(kind watch.EventType, object client.Object) {
		mu.Lock()
		defer mu.Unlock()
		if kind == watch.Modified {
			written[object.GetName()]++
		}
	}, client.InNamespace(w.ns))
	w.awaitSays(timed, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonTimedOut)
	follower.Stop(t)
	for _, s := range stops {
		if n := written[s.machine]; n > 0 {
			t.Errorf("%s, which waits in %s, was written %d times", s.machine, s.step, n)
		}
	}
}
