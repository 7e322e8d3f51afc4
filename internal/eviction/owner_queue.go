package eviction

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// item is a pod in the work queue, by its key in the dispatcher.
type item struct{ pod, owner types.NamespacedName }

// ownerQueues stores a work queue that takes one pod of each owner in turn. Pods that others wait for
// come first.
type ownerQueues struct {
	isAwaited func(item) bool

	first   []item
	waiting map[types.NamespacedName][]item
	// turns are the owners with waiting pods, the next one first.
	turns []types.NamespacedName
	size  int
}

func newOwnerQueues(isAwaited func(item) bool) *ownerQueues {
	return &ownerQueues{isAwaited: isAwaited, waiting: map[types.NamespacedName][]item{}}
}

// Push adds a pod.
func (q *ownerQueues) Push(t item) {
	q.size++
	if q.isAwaited(t) {
		q.first = append(q.first, t)
		return
	}
	if len(q.waiting[t.owner]) == 0 {
		q.turns = append(q.turns, t.owner)
	}
	q.waiting[t.owner] = append(q.waiting[t.owner], t)
}

// Touch moves a pod to the front if others wait for it now.
func (q *ownerQueues) Touch(t item) {
	at := slices.Index(q.waiting[t.owner], t)
	if at < 0 || !q.isAwaited(t) {
		return
	}
	q.waiting[t.owner] = slices.Delete(q.waiting[t.owner], at, at+1)
	if len(q.waiting[t.owner]) == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(owner types.NamespacedName) bool { return owner == t.owner })
	}
	q.first = append(q.first, t)
}

// Len returns the number of pods.
func (q *ownerQueues) Len() int { return q.size }

// Pop removes the next pod; there must be one.
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
