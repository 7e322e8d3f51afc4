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
	// crowd is how many passes may be in need of another cluster at once.
	crowd = 8
	// slowAfter is how long a request about a kind takes that hangs, or nearly so.
	slowAfter = time.Second
	// crowdRetry is when a pass that was one too many is tried again at the latest.
	crowdRetry = time.Second
)

// turns bounds how many passes at once may be in need of another cluster. When
// that hangs, passes hang with it until the connection is given up; those of all
// other clusters still find workers. It is safe for concurrent use.
type turns struct {
	limit int

	mu      sync.Mutex
	taken   map[types.NamespacedName]int
	waiting map[types.NamespacedName][]types.NamespacedName
	// slow are those of which only one turn is given at a time.
	slow map[types.NamespacedName]bool
}

func newTurns(limit int) *turns {
	return &turns{
		limit: limit, taken: map[types.NamespacedName]int{}, waiting: map[types.NamespacedName][]types.NamespacedName{},
		slow: map[types.NamespacedName]bool{},
	}
}

// take is false if the Machine has to wait until give names it.
func (t *turns) take(cluster, machine types.NamespacedName) bool {
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

// give ends what take began, and returns the Machines whose turn it is.
func (t *turns) give(cluster types.NamespacedName) (next []types.NamespacedName) {
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

// giveAfter ends what take began, which took so long. Of what is slow, one turn is
// given at a time until one is fast again.
func (t *turns) giveAfter(of types.NamespacedName, took time.Duration) (next []types.NamespacedName) {
	t.mu.Lock()
	if took >= slowAfter {
		t.slow[of] = true
	} else {
		delete(t.slow, of)
	}
	t.mu.Unlock()
	return t.give(of)
}

// most is how many turns may be taken at once.
func (t *turns) most(of types.NamespacedName) int {
	if t.slow[of] {
		return 1
	}
	return t.limit
}

// ofKind makes a request about objects of a kind, unless too many passes of the namespace
// are busy with that already; the pass is made again then. A kind whose webhooks or whose
// storage hang so keeps one worker, and not those of all Machines.
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

// giveTurn ends the pass of a Machine, and wakes those that waited for that.
func (r *reconciler) giveTurn(seen *observed) {
	if seen.connection != nil {
		r.wake(r.turns.give(workload.Identity(seen.Cluster.Object))...)
	}
}
