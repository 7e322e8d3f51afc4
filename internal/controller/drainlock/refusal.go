package drainlock

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// firstPause and lastPause bound how long a budget or a pod is left alone after
	// a write that failed. They double.
	firstPause, lastPause = time.Second, time.Minute
)

// refusals are the writes that failed of late, by node and by the UID of the object.
type refusals struct {
	mu  sync.Mutex
	all map[string]map[types.UID]refusal
}

type refusal struct {
	why   string
	until time.Time
	pause time.Duration
}

func newRefusals() *refusals { return &refusals{all: map[string]map[types.UID]refusal{}} }

// add notes that a write has failed.
func (r *refusals) add(node string, object types.UID, why string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := min(max(2*r.all[node][object].pause, firstPause), lastPause)
	if r.all[node] == nil {
		r.all[node] = map[types.UID]refusal{}
	}
	r.all[node][object] = refusal{why: why, until: now.Add(pause), pause: pause}
}

// of returns those of a node that are not to be tried again now, with the reason,
// and when the first of them is.
func (r *refusals) of(node string, now time.Time) (refused map[types.UID]string, due time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused = map[types.UID]string{}
	for object, one := range r.all[node] {
		if wait := one.until.Sub(now); wait > 0 {
			refused[object] = one.why
			due = kube.Soonest(due, wait)
		}
	}
	return refused, due
}

// drop forgets a write that has succeeded.
func (r *refusals) drop(node string, object types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all[node], object)
}

// forget drops everything of a node.
func (r *refusals) forget(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, node)
}
