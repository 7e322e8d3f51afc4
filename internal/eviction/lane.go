package eviction

import "k8s.io/apimachinery/pkg/types"

// ticket is one pod in the work queue.
type ticket struct {
	// pod is its key in the room.
	pod types.NamespacedName
	// payer is the owner whose turns the pod takes.
	payer types.NamespacedName
}

// lanes is the storage of a work queue that takes one pod of each owner in turn.
type lanes struct {
	waiting map[types.NamespacedName][]ticket
	// turns are the owners with waiting pods, the next one first.
	turns []types.NamespacedName
	size  int
}

func newLanes() *lanes { return &lanes{waiting: map[types.NamespacedName][]ticket{}} }

// Touch is told of a pod that waits already and keeps its place.
func (l *lanes) Touch(ticket) {}

func (l *lanes) Push(t ticket) {
	if len(l.waiting[t.payer]) == 0 {
		l.turns = append(l.turns, t.payer)
	}
	l.waiting[t.payer] = append(l.waiting[t.payer], t)
	l.size++
}

func (l *lanes) Len() int { return l.size }

// Pop is called only if there is something.
func (l *lanes) Pop() ticket {
	payer := l.turns[0]
	l.turns = l.turns[1:]
	lane := l.waiting[payer]
	if len(lane) > 1 {
		l.waiting[payer] = lane[1:]
		l.turns = append(l.turns, payer)
	} else {
		delete(l.waiting, payer)
	}
	l.size--
	return lane[0]
}
