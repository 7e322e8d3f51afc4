package rollout

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/kube"
)

// firstPause and lastPause bound how long a write rests after it failed. The pause doubles.
const firstPause, lastPause = time.Second, time.Minute

const maxRefusal = 512 // bytes

// refusals holds the errors of the last failed writes by a name. It is safe for concurrent use.
type refusals struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[string]refusal
}

type refusal struct {
	message string
	// final is true if the API server has refused the write.
	final bool
	until time.Time
	pause time.Duration
}

func newRefusals(clk clock.PassiveClock) *refusals {
	return &refusals{clock: clk, all: map[string]refusal{}}
}

func (r *refusals) add(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := min(max(2*r.all[name].pause, firstPause), lastPause)
	r.all[name] = refusal{message: excerpt.Of(err.Error(), maxRefusal), final: isRefused(err), until: r.clock.Now().Add(pause), pause: pause}
}

func (r *refusals) drop(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, name)
}

// left returns how long a write must not be retried yet.
func (r *refusals) left(name string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.all[name].until.Sub(r.clock.Now()), 0)
}

// resting returns the errors of writes that rest, and when the first of them may be retried; 0 is
// never.
func (r *refusals) resting() (messages map[string]string, due time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	messages = make(map[string]string, len(r.all))
	for name, one := range r.all {
		if left := one.until.Sub(r.clock.Now()); left > 0 {
			messages[name] = one.message
			due = kube.Soonest(due, left)
		}
	}
	return messages, due
}

// keep forgets all writes but those with these names and those that rest.
func (r *refusals) keep(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.all, func(name string, one refusal) bool {
		return !one.until.After(r.clock.Now()) && !slices.Contains(names, name)
	})
}
