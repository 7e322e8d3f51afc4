package machine

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/workload"
)

const (
	// crowd is the number of passes that may use another cluster at once.
	crowd = 8
	// slowAfter is the duration from which a request about a kind counts as slow.
	slowAfter = time.Second
	// crowdRetry is the latest retry of a pass that found no slot.
	crowdRetry = time.Second
)

// slots limit the passes that use another cluster at once. If it hangs, its passes hang until the
// connection is given up; those of other clusters still find workers. It is safe for concurrent
// use.
type slots struct {
	limit int

	mu      sync.Mutex
	taken   map[types.NamespacedName]int
	waiting map[types.NamespacedName][]types.NamespacedName
	// slow are the keys with only one slot.
	slow map[types.NamespacedName]bool
}

func newSlots(limit int) *slots {
	return &slots{
		limit: limit, taken: map[types.NamespacedName]int{}, waiting: map[types.NamespacedName][]types.NamespacedName{},
		slow: map[types.NamespacedName]bool{},
	}
}

// take returns false if the Machine has to wait until give returns it.
func (t *slots) take(cluster, machine types.NamespacedName) bool {
	if cluster == workload.Local {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[cluster] < t.most(cluster) {
		t.taken[cluster]++
		return true
	}
	if !slices.Contains(t.waiting[cluster], machine) {
		t.waiting[cluster] = append(t.waiting[cluster], machine)
	}
	return false
}

// give returns a slot, and the Machines that get the next ones.
func (t *slots) give(cluster types.NamespacedName) (next []types.NamespacedName) {
	if cluster == workload.Local {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken[cluster]--
	free := max(0, min(t.most(cluster)-t.taken[cluster], len(t.waiting[cluster])))
	next, t.waiting[cluster] = t.waiting[cluster][:free], t.waiting[cluster][free:]
	if t.taken[cluster] == 0 {
		delete(t.taken, cluster)
	}
	if len(t.waiting[cluster]) == 0 {
		delete(t.waiting, cluster)
	}
	return next
}

// giveAfter returns a slot that was used for some time. Slow keys have one slot until a request is
// fast again.
func (t *slots) giveAfter(of types.NamespacedName, took time.Duration) (next []types.NamespacedName) {
	t.mu.Lock()
	if took >= slowAfter {
		t.slow[of] = true
	} else {
		delete(t.slow, of)
	}
	t.mu.Unlock()
	return t.give(of)
}

func (t *slots) most(of types.NamespacedName) int {
	if t.slow[of] {
		return 1
	}
	return t.limit
}

// ofKind makes a request about objects of a kind unless too many passes do, in which case the pass
// is repeated. A kind with a hanging webhook or storage therefore occupies one worker.
func (r *reconciler) ofKind(seen *observed, kind schema.GroupVersionKind, request func() error) error {
	key := types.NamespacedName{Namespace: seen.Machine.Namespace, Name: kind.GroupKind().String()}
	if !r.kinds.take(key, client.ObjectKeyFromObject(seen.Machine)) {
		seen.crowded = true
		return nil
	}
	began := r.clock.Now()
	defer func() { r.wake(r.kinds.giveAfter(key, r.clock.Since(began))...) }()
	return request()
}

func (r *reconciler) giveTurn(seen *observed) {
	if seen.connection != nil {
		r.wake(r.slots.give(workload.Identity(seen.Cluster.Object))...)
	}
}
