package eviction

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// item is one pod in the work queue.
type item struct {
	// pod is its key in the dispatcher.
	pod   types.NamespacedName
	owner types.NamespacedName
}

// ownerQueues is the storage of a work queue that takes one pod of each owner in turn.
// A pod that others wait for goes before all of them.
type ownerQueues struct {
	// awaited reports whether others wait for a pod.
	awaited func(item) bool

	first   []item
	waiting map[types.NamespacedName][]item
	// turns are the owners with waiting pods, the next one first.
	turns []types.NamespacedName
	size  int
}

func newOwnerQueues(awaited func(item) bool) *ownerQueues {
	return &ownerQueues{awaited: awaited, waiting: map[types.NamespacedName][]item{}}
}

// Push adds a pod that does not wait yet.
func (q *ownerQueues) Push(t item) {
	q.size++
	if q.awaited(t) {
		q.first = append(q.first, t)
		return
	}
	if len(q.waiting[t.owner]) == 0 {
		q.turns = append(q.turns, t.owner)
	}
	q.waiting[t.owner] = append(q.waiting[t.owner], t)
}

// Touch learns of a pod that waits already.
func (q *ownerQueues) Touch(t item) {
	at := slices.Index(q.waiting[t.owner], t)
	if at < 0 || !q.awaited(t) {
		return
	}
	q.waiting[t.owner] = slices.Delete(q.waiting[t.owner], at, at+1)
	if len(q.waiting[t.owner]) == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(owner types.NamespacedName) bool { return owner == t.owner })
	}
	q.first = append(q.first, t)
}

// Len returns how many pods wait.
func (q *ownerQueues) Len() int { return q.size }

// Pop removes the next pod. It is called only if there is one.
func (q *ownerQueues) Pop() item {
	q.size--
	if len(q.first) > 0 {
		next := q.first[0]
		q.first = q.first[1:]
		return next
	}
	owner := q.turns[0]
	q.turns = q.turns[1:]
	ownerQueue := q.waiting[owner]
	q.waiting[owner] = ownerQueue[1:]
	if len(ownerQueue) > 1 {
		q.turns = append(q.turns, owner)
	} else {
		delete(q.waiting, owner)
	}
	return ownerQueue[0]
}
