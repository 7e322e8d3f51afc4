package kube

import (
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// places is the number of workers of a controller, nearly all of which wait, so that hanging items
// do not block others.
const places = 640

// shares is a priority queue that puts items aside while their share has all its workers. A
// share has at most limit workers, and one of its own even if others use all that they may:
// half of the workers go only to shares that have none. Reconciliations of one share that hang
// hold up no other. Which share an item is of may change; what counts is where it began.
//
// A worker that is done asks for the next item. Therefore no item is put aside that could be
// worked on: what a worker has left is given to the share with the fewest workers first, so
// that there are as many as before.
type shares[R comparable] struct {
	priorityqueue.PriorityQueue[R]

	limit, places int
	of            func(R) string

	mu sync.Mutex
	// working are the items in progress with the share that they started in.
	working map[R]string
	running map[string]int
	aside   map[string][]queued[R]
}

type queued[R comparable] struct {
	item     R
	priority int
}

func newShares[R comparable](queue priorityqueue.PriorityQueue[R], limit, places int, of func(R) string) *shares[R] {
	return &shares[R]{PriorityQueue: queue, limit: limit, places: places, of: of, working: map[R]string{}, running: map[string]int{}, aside: map[string][]queued[R]{}}
}

// Get returns the next item.
func (q *shares[R]) Get() (item R, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority returns the next item whose share has a worker left.
func (q *shares[R]) GetWithPriority() (item R, priority int, shutdown bool) {
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
func (q *shares[R]) Done(item R) {
	q.mu.Lock()
	share := q.working[item]
	delete(q.working, item)
	if q.running[share]--; q.running[share] == 0 {
		delete(q.running, share)
	}
	q.mu.Unlock()
	q.PriorityQueue.Done(item)
}

func (q *shares[R]) begin(one queued[R]) bool {
	share := q.of(one.item)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.admits(share) {
		q.take(share, one.item)
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

func (q *shares[R]) next() (one queued[R], found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var least string
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
	q.take(least, one.item)
	return one, true
}

func (q *shares[R]) take(share string, item R) {
	q.running[share]++
	q.working[item] = share
}

func (q *shares[R]) admits(share string) bool {
	running := q.running[share]
	return running == 0 || running < q.limit && len(q.working) < q.places/2
}
