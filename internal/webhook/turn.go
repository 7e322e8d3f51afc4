package webhook

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// turns bounds how many work at the same time: for one namespace, and for all. The others
// wait in the order in which they came. A namespace with many in its queue has at most its
// share of the common one, so it delays no other namespace by more than that.
type turns struct {
	each int64
	all  *semaphore.Weighted

	mu     sync.Mutex
	queues map[string]*queue
}

// queue is that of one namespace. It is dropped when nobody is in it.
type queue struct {
	*semaphore.Weighted
	users int
}

func newTurns(each, all int64) *turns {
	return &turns{each: each, all: semaphore.NewWeighted(all), queues: map[string]*queue{}}
}

// take waits for a turn, which done ends.
//
// Errors: the context has ended.
func (t *turns) take(ctx context.Context, namespace string) (done func(), err error) {
	own := t.join(namespace)
	if err := own.Acquire(ctx, 1); err != nil {
		t.leave(namespace)
		return nil, err
	}
	leave := func() {
		own.Release(1)
		t.leave(namespace)
	}
	if err := t.all.Acquire(ctx, 1); err != nil {
		leave()
		return nil, err
	}
	return func() {
		t.all.Release(1)
		leave()
	}, nil
}

func (t *turns) join(namespace string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	own, found := t.queues[namespace]
	if !found {
		own = &queue{Weighted: semaphore.NewWeighted(t.each)}
		t.queues[namespace] = own
	}
	own.users++
	return own
}

func (t *turns) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.queues[namespace]; own.users > 1 {
		own.users--
	} else {
		delete(t.queues, namespace)
	}
}
