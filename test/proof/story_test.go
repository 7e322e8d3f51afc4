package proof

import (
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// nodes is how many a story has; at least one of them is never drained.
const nodes = 3

// story is what is drained in one drain, how, and what happens meanwhile.
type story struct {
	replicas int32
	maxSurge intstr.IntOrString
	// minAvailable and maxUnavailable are the budget's; without either there is none.
	minAvailable, maxUnavailable *intstr.IntOrString
	minReadySeconds              int32
	readyAfter, terminateAfter   time.Duration
	// together is how many nodes are drained at once.
	together int
	// cancelAt and killAt are when the maintenance is completed early and when
	// the manager is killed: at the change of the pods with this number, from 1.
	// 0 is never.
	cancelAt, killAt int
}

// draw returns the story of a seed that has this number.
func draw(seed uint64, number int) story {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	s := story{
		replicas:        1 + r.Int32N(4),
		maxSurge:        pick(r, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("25%")),
		minReadySeconds: r.Int32N(3),
		readyAfter:      time.Duration(r.IntN(1500)) * time.Millisecond,
		terminateAfter:  time.Duration(r.IntN(500)) * time.Millisecond,
		together:        1 + r.IntN(nodes-1),
	}
	switch r.IntN(4) {
	case 0:
		s.minAvailable = new(intstr.FromInt32(1))
	case 1:
		s.maxUnavailable = new(intstr.FromInt32(r.Int32N(2)))
	}
	// Moving a pod changes it and its successor about ten times.
	changes := 4 + 4*int(s.replicas)
	if r.IntN(3) == 0 {
		s.cancelAt = 1 + r.IntN(changes)
	}
	if r.IntN(4) == 0 {
		s.killAt = 1 + r.IntN(changes)
	}
	return s
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

func (s story) String() string {
	budget := "no budget"
	switch {
	case s.minAvailable != nil:
		budget = "minAvailable " + s.minAvailable.String()
	case s.maxUnavailable != nil:
		budget = "maxUnavailable " + s.maxUnavailable.String()
	}
	return fmt.Sprintf("%d replicas, maxSurge %s, %s, minReadySeconds %d, ready after %s, gone after %s, %d nodes, cancelled at change %d, manager killed at change %d",
		s.replicas, s.maxSurge.String(), budget, s.minReadySeconds, s.readyAfter, s.terminateAfter, s.together, s.cancelAt, s.killAt)
}
