package webhook

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// namespaceLimit bounds concurrent requests, for each namespace and in total. Others wait in order. A
// namespace takes at most its share, so it delays other namespaces by no more than that.
type namespaceLimit struct {
	each int64
	all  *semaphore.Weighted

	mu     sync.Mutex
	queues map[string]*queue
}

// queue holds the waiting requests of one namespace. It is dropped when it is empty.
type queue struct {
	*semaphore.Weighted
	users int
}

func newNamespaceLimit(each, all int64) *namespaceLimit {
	return &namespaceLimit{each: each, all: semaphore.NewWeighted(all), queues: map[string]*queue{}}
}

// take waits until a request may be answered; done is called after it.
//
// Errors: the context has ended.
func (t *namespaceLimit) take(ctx context.Context, namespace string) (done func(), err error) {
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

func (t *namespaceLimit) join(namespace string) *queue {
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

func (t *namespaceLimit) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.queues[namespace]; own.users > 1 {
		own.users--
	} else {
		delete(t.queues, namespace)
	}
}
