package scenario

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Somebody evicts replicas all the time while nodes come and go. An eviction that
// was allowed a moment before the lock may still land after it. Still a node is said
// to be drained only when its reboot takes down one replica too few to matter.
func TestEvictionsRaceWithLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	// A budget takes the next pod of the same name for the one that was evicted, for
	// two minutes. Those of a Deployment have names of their own.
	w.replicatedAs("Deployment", "minReadySeconds: 0", myApp, yourApp)
	outages := w.watchOutages(myApp, yourApp)
	stop := w.hammer(nodes[2], myApp, yourApp)

	for _, r := range []rolling{{"upgrade-one", nodes[0]}, {"upgrade-two", nodes[1]}} {
		w.maintainInPlace(r.maintenance, minutes, r.node)
		w.awaitDrained(r.maintenance)
		w.goDown(r.node)
		w.awaitAllowed(myApp, 0)
		w.boot(r.node)
		w.setStage(r.maintenance, v1alpha1.StageComplete)
		w.recover(r.node)
	}
	if evicted := stop(); evicted < 4 {
		t.Errorf("only %d evictions took place beside the drains", evicted)
	}

	w.awaitNothingLocked(nodes...)
	outages.assertOneAtATime()
}

// hammer evicts the replicas of applications on a node, again as soon as they are
// back, until it is told to stop. It returns how often.
func (w *world) hammer(node string, apps ...string) (stop func() (evicted int)) {
	w.t.Helper()
	var running sync.WaitGroup
	end := make(chan struct{})
	counts := make(chan int, len(apps))
	for _, app := range apps {
		running.Go(func() {
			evicted := 0
			defer func() { counts <- evicted }()
			for {
				select {
				case <-end:
					return
				case <-time.After(time.Duration(rand.IntN(200)) * time.Millisecond):
				}
				replica := w.replica(app, node)
				if replica == nil || !available(replica) {
					continue
				}
				switch err := w.evict(replica); {
				case err == nil:
					evicted++
				case !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err):
					w.t.Errorf("evict %s: %v", replica.Name, err)
				}
			}
		})
	}
	stop = sync.OnceValue(func() (evicted int) {
		close(end)
		running.Wait()
		for range apps {
			evicted += <-counts
		}
		return evicted
	})
	w.t.Cleanup(func() { stop() })
	return stop
}
