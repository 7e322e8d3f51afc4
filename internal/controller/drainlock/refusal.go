package drainlock

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// firstPause and lastPause bound how long an object is left alone after a failed write. The
	// pause doubles.
	firstPause, lastPause = time.Second, time.Minute
)

// refusals are the recent failed writes by node and UID of the object.
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

func (r *refusals) add(node string, object types.UID, why string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := min(max(2*r.all[node][object].pause, firstPause), lastPause)
	if r.all[node] == nil {
		r.all[node] = map[types.UID]refusal{}
	}
	r.all[node][object] = refusal{why: why, until: now.Add(pause), pause: pause}
}

// of returns the refusals of a node with their reasons, and when the first of them ends.
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

func (r *refusals) drop(node string, object types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all[node], object)
}

func (r *refusals) forget(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, node)
}
