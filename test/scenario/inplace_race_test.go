package scenario

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Somebody evicts replicas all the time while nodes come and go. An eviction that
// was allowed a moment before the lock may still land after it. Still a node is said
// to be drained only when its reboot takes down one replica too few to matter.
func TestLongEvictionsRaceWithLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	// A budget takes the next pod of the same name for the one that was evicted, for
	// two minutes. Those of a Deployment have names of their own.
	w.replicatedAs("Deployment", "minReadySeconds: 0", myApp, yourApp)
	outages := w.watchOutages(myApp, yourApp)
	hammer := w.hammer(nodes[2], myApp, yourApp)

	for i, r := range []rolling{{"upgrade-one", nodes[0]}, {"upgrade-two", nodes[1]}} {
		w.eventually("some evictions", func() (bool, any) { return hammer.evicted.Load() >= int32(2*i+2), hammer.evicted.Load() })
		w.maintainInPlace(r.maintenance, minutes, r.node)
		w.awaitDrained(r.maintenance)
		w.goDown(r.node)
		w.awaitAllowed(myApp, 0)
		w.boot(r.node)
		w.setStage(r.maintenance, v1alpha1.StageComplete)
		w.recover(r.node)
	}
	hammer.stop()

	w.awaitNothingLocked(nodes...)
	outages.assertOneAtATime()
}

// hammer evicts the replicas of applications, again as soon as they are back.
type hammer struct {
	evicted atomic.Int32
	stop    func()
}

// hammer evicts on a node until it is stopped.
func (w *world) hammer(node string, apps ...string) *hammer {
	w.t.Helper()
	h, end := &hammer{}, make(chan struct{})
	var running sync.WaitGroup
	for _, app := range apps {
		running.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(time.Duration(rand.IntN(400)) * time.Millisecond):
					h.strike(w, app, node)
				}
			}
		})
	}
	h.stop = sync.OnceFunc(func() {
		close(end)
		running.Wait()
	})
	w.t.Cleanup(h.stop)
	return h
}

func (h *hammer) strike(w *world, app, node string) {
	replica := w.replica(app, node)
	if replica == nil || !available(replica) {
		return
	}
	switch err := w.evict(replica); {
	case err == nil:
		h.evicted.Add(1)
	case !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err):
		w.t.Errorf("evict %s: %v", replica.Name, err)
	}
}
