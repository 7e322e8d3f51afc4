package machine

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/workload"
)

const (
	// crowd is how many passes may be in need of another cluster at once.
	crowd = 8
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
}

func newTurns(limit int) *turns {
	return &turns{
		limit: limit, taken: map[types.NamespacedName]int{}, waiting: map[types.NamespacedName][]types.NamespacedName{},
	}
}

// take is false if the Machine has to wait until give names it.
func (t *turns) take(cluster, machine types.NamespacedName) bool {
	if cluster == workload.Local {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[cluster] < t.limit {
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
	free := min(t.limit-t.taken[cluster], len(t.waiting[cluster]))
	next, t.waiting[cluster] = t.waiting[cluster][:free], t.waiting[cluster][free:]
	if t.taken[cluster] == 0 {
		delete(t.taken, cluster)
	}
	if len(t.waiting[cluster]) == 0 {
		delete(t.waiting, cluster)
	}
	return next
}

// giveTurn ends the pass of a Machine, and wakes those that waited for that.
func (r *reconciler) giveTurn(seen *observed) {
	if seen.connection != nil {
		r.wake(r.turns.give(workload.Identity(seen.Cluster.Object))...)
	}
}
