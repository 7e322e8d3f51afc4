package kube

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Places is how many workers a controller has in which a few items that hang hold up no other.
// Nearly all of them wait.
const Places = 640

// Shares returns the work queue of a controller with as many workers as Places. Items share
// by what of returns, such as their namespace. A share has at most limit workers, and one of
// its own even if others use all that they may: half of the workers go only to shares that
// have none. Reconciliations of one namespace that hang hold up no other.
func Shares[R, S comparable](limit int, of func(R) S) func(string, workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] {
	return func(name string, limiter workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] {
		queue := priorityqueue.New(name, func(o *priorityqueue.Opts[R]) { o.RateLimiter = limiter })
		return newShares(queue, limit, Places, of)
	}
}

// ShareOfNamespace gives each namespace a share.
func ShareOfNamespace(request reconcile.Request) string { return request.Namespace }

// shares is a priority queue that puts items aside while their share has all its workers.
//
// A worker that is done asks for the next item. Therefore no item is put aside that could be
// worked on: what a worker has left is given to the share with the fewest workers first, so
// that there are as many as before.
type shares[R, S comparable] struct {
	priorityqueue.PriorityQueue[R]

	limit, places int
	of            func(R) S

	mu      sync.Mutex
	running map[S]int
	total   int
	aside   map[S][]queued[R]
}

// queued is an item that was put aside.
type queued[R comparable] struct {
	item     R
	priority int
}

func newShares[R, S comparable](queue priorityqueue.PriorityQueue[R], limit, places int, of func(R) S) *shares[R, S] {
	return &shares[R, S]{PriorityQueue: queue, limit: limit, places: places, of: of, running: map[S]int{}, aside: map[S][]queued[R]{}}
}

// Get returns the next item.
func (q *shares[R, S]) Get() (item R, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority returns the next item whose share has a worker left.
func (q *shares[R, S]) GetWithPriority() (item R, priority int, shutdown bool) {
	for {
		if next, found := q.next(); found {
			return next.item, next.priority, q.ShuttingDown()
		}
		item, priority, shutdown = q.PriorityQueue.GetWithPriority()
		if shutdown || q.begin(queued[R]{item, priority}) {
			return item, priority, shutdown
		}
	}
}

// Done ends the work on an item.
func (q *shares[R, S]) Done(item R) {
	share := q.of(item)
	q.mu.Lock()
	if q.running[share]--; q.running[share] == 0 {
		delete(q.running, share)
	}
	q.total--
	q.mu.Unlock()
	q.PriorityQueue.Done(item)
}

// begin takes a worker for an item, or puts it aside.
func (q *shares[R, S]) begin(one queued[R]) bool {
	share := q.of(one.item)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.admits(share) {
		q.take(share)
		return true
	}
	aside := q.aside[share]
	at := slices.IndexFunc(aside, func(other queued[R]) bool { return other.priority < one.priority })
	if at < 0 {
		at = len(aside)
	}
	q.aside[share] = slices.Insert(aside, at, one)
	return false
}

// next takes a worker for an item that was put aside.
func (q *shares[R, S]) next() (one queued[R], found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var least S
	for share := range q.aside {
		if q.admits(share) && (!found || q.running[share] < q.running[least]) {
			least, found = share, true
		}
	}
	if !found {
		return one, false
	}
	one = q.aside[least][0]
	if q.aside[least] = q.aside[least][1:]; len(q.aside[least]) == 0 {
		delete(q.aside, least)
	}
	q.take(least)
	return one, true
}

func (q *shares[R, S]) take(share S) {
	q.running[share]++
	q.total++
}

// admits reports whether a share may have one more worker.
func (q *shares[R, S]) admits(share S) bool {
	running := q.running[share]
	return running == 0 || running < q.limit && q.total < q.places/2
}
