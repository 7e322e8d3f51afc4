package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// workers take items of the form "namespace/name" from a queue with shares, and hang until
// they are let go.
type workers struct {
	t     *testing.T
	queue *shares[string]
}

func newWorkers(t *testing.T, limit, places int) *workers {
	t.Helper()
	inner := priorityqueue.New("", func(o *priorityqueue.Opts[string]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Millisecond, time.Second)
	})
	t.Cleanup(func() {
		if !inner.ShuttingDown() {
			inner.ShutDown()
		}
	})
	return &workers{t: t, queue: newShares(inner, limit, places, func(item string) string {
		namespace, _, _ := strings.Cut(item, "/")
		return namespace
	})}
}

func (w *workers) add(priority int, items ...string) {
	w.t.Helper()
	w.queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, items...)
}

func (w *workers) take(want ...string) {
	w.t.Helper()
	var got []string
	for range want {
		item, _ := w.queue.Get()
		got = append(got, item)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("taken (-want +got):\n%s", diff)
	}
}

func TestShareOfNamespaceThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorkers(t, 2, 100)
	w.add(0, "slow/1", "slow/2", "slow/3", "slow/4", "good/1")
	w.take("slow/1", "slow/2", "good/1")
	w.queue.Done("slow/2")
	w.take("slow/3")
}

func TestShareKeepsPriorityOfItemsPutAside(t *testing.T) {
	t.Parallel()
	w := newWorkers(t, 1, 100)
	w.add(0, "slow/1")
	w.take("slow/1")
	w.add(-10, "slow/clean")
	w.add(0, "slow/2", "slow/3", "good/1")
	w.take("good/1")
	w.add(10, "slow/woken", "good/2")
	w.queue.Done("good/1")
	w.take("good/2")
	last := "slow/1"
	for _, next := range []string{"slow/woken", "slow/2", "slow/3", "slow/clean"} {
		w.queue.Done(last)
		w.take(next)
		last = next
	}
}

// Half of the workers are for those who have none.
func TestShareOfNewcomerWhileCrowdsHang(t *testing.T) {
	t.Parallel()
	w := newWorkers(t, 10, 8)
	w.add(0, "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "b/1", "b/2", "c/1")
	w.take("a/1", "a/2", "a/3", "a/4", "b/1", "c/1")
	// One that is done leaves its worker to the share with the fewest.
	w.queue.Done("b/1")
	w.take("b/2")
	w.queue.Done("c/1")
	w.queue.Done("b/2")
	w.queue.Done("a/4")
	w.take("a/5")
}

// What comes again while it is aside or worked on is worked on once more, not twice at once.
func TestShareNeverWorksOnAnItemTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorkers(t, 1, 100)
	w.add(0, "slow/1", "slow/2", "good/1")
	w.take("slow/1", "good/1")
	w.add(0, "slow/1", "slow/2", "good/2")
	w.queue.Done("good/1")
	w.take("good/2")
	w.queue.Done("slow/1")
	w.take("slow/2")
	w.queue.Done("slow/2")
	got := []string{}
	for range 2 {
		item, _ := w.queue.Get()
		got = append(got, item)
		w.queue.Done(item)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"slow/1", "slow/2"}, got); diff != "" {
		t.Errorf("worked on again (-want +got):\n%s", diff)
	}
}
