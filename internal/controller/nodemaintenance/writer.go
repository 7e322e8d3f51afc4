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

// writer makes the writes of one pass and collects their results. It is safe for concurrent use.
type writer struct {
	*reconciler
	group *group.Group

	mu    sync.Mutex
	due   time.Duration // of the next pass; 0 is never
	stale error         // of a write that was decided on old state
	// refused counts refused writes, first is one of their errors.
	refused int
	first   error
}

// wait schedules another pass after a time, unless that is 0.
func (w *writer) wait(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = kube.Soonest(w.due, after)
}

// write makes a write of a node or maintenance unless it rests after a refusal, and returns true if it
// was made.
func (w *writer) write(owner group.Member, write maintenance.Write, request func() error) bool {
	return !w.rests(owner, write) && w.settle(owner, write, request())
}

// rests returns true if a write must not be retried yet.
func (w *writer) rests(owner group.Member, write maintenance.Write) bool {
	rest := w.refusals.left(w.clock.Now(), owner, write)
	w.wait(rest)
	return rest > 0
}

// settle accounts for the result of a write, and returns true if it was made.
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
		// The next pass reports it.
		w.wait(min(statusInterval, w.refusals.add(w.clock.Now(), owner, write, err)))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refused++
		w.first = err
	}
	return false
}

// logRefusals logs refused writes in one line. Status and events have them by object.
func (w *writer) logRefusals(ctx context.Context) {
	if w.refused > 0 {
		log.FromContext(ctx).Error(w.first, "Writes refused, retrying each by its own back-off", "refused", w.refused)
	}
}
