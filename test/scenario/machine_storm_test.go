package scenario

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// stormy is how often others write to what we write to.
const stormy = 50 * time.Millisecond

// storm writes an object again and again until the returned function is called.
func (w *world) storm(object client.Object, name, patch string) (end func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	object.SetName(name)
	object.SetNamespace(w.ns)
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(stormy)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			// It may not be there yet, or not any more.
			_ = w.client.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, n)))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// Somebody writes the Machine, its infrastructure and its Node twenty times a
// second. It lives and goes nevertheless. It runs by itself: who is slower than the storm
// because of others loses to it.
func TestLongAMachineLivesAndGoesInAStorm(t *testing.T) {
	w := newMachineWorld(t)
	const annotation = `{"metadata":{"annotations":{"example.com/storm":"%d"}}}`
	name := w.name("windy")
	for _, object := range []client.Object{w.machineOf(name), w.instance(), w.config()} {
		t.Cleanup(w.storm(object, name, annotation))
	}
	w.machine("windy")
	w.awaitRunning(name)
	w.pods(name, pod{name: "web"}, pod{name: "db"})
	w.deleteMachines(name)
	w.awaitNothingLeft(name)
}

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
