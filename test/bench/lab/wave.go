package lab

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// waves are the pods of Deployments that leave in turn. A wave begins when the
// first of its pods is told to go, and is gone when the last one is.
type waves struct {
	// turns are the places of the Deployments; empty if they leave in no order.
	turns map[string]int
	// left is how many pods of each wave are there.
	left []int
	// begun and gone are when it was seen.
	begun, gone []time.Time
	// early says which pod was first to be told to go before its turn.
	early error
}

func newWaves(load *Load) *waves {
	turns := load.turns()
	w := &waves{turns: map[string]int{}, left: make([]int, len(turns))}
	for turn, app := range turns {
		w.turns[app.name] = turn
	}
	w.begun, w.gone = make([]time.Time, len(turns)), make([]time.Time, len(turns))
	return w
}

// add takes in a pod that is to leave.
func (w *waves) add(pod *corev1.Pod) {
	if turn, inTurn := w.turns[pod.Labels[appLabel]]; inTurn {
		w.left[turn]++
	}
}

// see takes in that one of the pods has changed or is gone.
func (w *waves) see(pod *corev1.Pod, at time.Time, gone bool) {
	turn, inTurn := w.turns[pod.Labels[appLabel]]
	if !inTurn || pod.DeletionTimestamp == nil && !gone {
		return
	}
	if w.begun[turn].IsZero() {
		w.begin(turn, pod, at)
	}
	if !gone {
		return
	}
	if w.left[turn]--; w.left[turn] == 0 {
		w.gone[turn] = at
	}
}

func (w *waves) begin(turn int, pod *corev1.Pod, at time.Time) {
	w.begun[turn] = at
	for before, left := range w.left[:turn] {
		if left > 0 && w.early == nil {
			w.early = fmt.Errorf("pod %s of wave %d was told to go before %d pods of wave %d had gone", pod.Name, turn+1, left, before+1)
		}
	}
}

// gaps are the times between the end of each wave, but the last, and the beginning
// of the next.
//
// Errors: a pod was told to go before its turn.
func (w *waves) gaps() ([]time.Duration, error) {
	if w.early != nil {
		return nil, w.early
	}
	var gaps []time.Duration
	for turn := 1; turn < len(w.left); turn++ {
		gaps = append(gaps, w.begun[turn].Sub(w.gone[turn-1]))
	}
	return gaps, nil
}
