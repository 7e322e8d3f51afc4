package nodemaintenance

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// writer makes the writes of one pass and remembers what they have come to. It is safe
// for concurrent use.
type writer struct {
	*reconciler
	// group is whose pass it is.
	group *group.Group

	mu sync.Mutex
	// due is when the next pass is due; 0 is never.
	due time.Duration
	// stale is one of the writes that were decided on old state.
	stale error
	// refused is how many writes the API server refused, first is one of them.
	refused int
	first   error
}

// wait asks for another pass after a time; 0 asks for none.
func (w *writer) wait(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = kube.Soonest(w.due, after)
}

// write makes a write that belongs to a node or a maintenance, unless it rests after a
// refusal. It returns true if it was made.
func (w *writer) write(owner group.Member, write maintenance.Write, request func() error) bool {
	return !w.rests(owner, write) && w.settle(owner, write, request())
}

// rests returns true if a write is not to be tried again yet.
func (w *writer) rests(owner group.Member, write maintenance.Write) bool {
	rest := w.refusals.left(w.clock.Now(), owner, write)
	w.wait(rest)
	return rest > 0
}

// settle takes what has come of a write to account, and returns true if it was made.
func (w *writer) settle(owner group.Member, write maintenance.Write, err error) bool {
	switch {
	case err == nil:
		w.refusals.forget(owner, write)
		return true
	case stale(err):
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stale = err
	default:
		// The next pass tells of it.
		w.wait(min(statusInterval, w.refusals.add(w.clock.Now(), owner, write, err)))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refused++
		w.first = err
	}
	return false
}

// tell logs what was refused, in one line however much it is: status and events have
// it object by object.
func (w *writer) tell(ctx context.Context) {
	if w.refused > 0 {
		log.FromContext(ctx).Error(w.first, "Writes were refused; each is tried again by its own back-off", "refused", w.refused)
	}
}
