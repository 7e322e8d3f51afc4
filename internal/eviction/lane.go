package eviction

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ticket is one pod in the work queue.
type ticket struct {
	// pod is its key in the room.
	pod types.NamespacedName
	// payer is the owner whose turns the pod takes.
	payer types.NamespacedName
}

// lanes is the storage of a work queue that takes one pod of each owner in turn.
// A pod that others wait for goes before all of them.
type lanes struct {
	// awaited reports whether others wait for a pod.
	awaited func(pod types.NamespacedName) bool

	first   []ticket
	waiting map[types.NamespacedName][]ticket
	// turns are the owners with waiting pods, the next one first.
	turns []types.NamespacedName
	size  int
}

func newLanes(awaited func(pod types.NamespacedName) bool) *lanes {
	return &lanes{awaited: awaited, waiting: map[types.NamespacedName][]ticket{}}
}

// Push adds a pod that does not wait yet.
func (l *lanes) Push(t ticket) {
	l.size++
	if l.awaited(t.pod) {
		l.first = append(l.first, t)
		return
	}
	if len(l.waiting[t.payer]) == 0 {
		l.turns = append(l.turns, t.payer)
	}
	l.waiting[t.payer] = append(l.waiting[t.payer], t)
}

// Touch is told of a pod that waits already.
func (l *lanes) Touch(t ticket) {
	at := slices.Index(l.waiting[t.payer], t)
	if at < 0 || !l.awaited(t.pod) {
		return
	}
	l.waiting[t.payer] = slices.Delete(l.waiting[t.payer], at, at+1)
	if len(l.waiting[t.payer]) == 0 {
		l.turns = slices.DeleteFunc(l.turns, func(payer types.NamespacedName) bool { return payer == t.payer })
	}
	l.first = append(l.first, t)
}

// Len returns how many pods wait.
func (l *lanes) Len() int { return l.size }

// Pop removes the next pod. It is called only if there is one.
func (l *lanes) Pop() ticket {
	l.size--
	if len(l.first) > 0 {
		next := l.first[0]
		l.first = l.first[1:]
		return next
	}
	payer := l.turns[0]
	l.turns = l.turns[1:]
	lane := l.waiting[payer]
	l.waiting[payer] = lane[1:]
	if len(lane) > 1 {
		l.turns = append(l.turns, payer)
	} else {
		delete(l.waiting, payer)
	}
	return lane[0]
}
