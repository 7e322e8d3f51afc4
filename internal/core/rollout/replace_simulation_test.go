package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// In random fleets, in which writes get lost, machines are slow and nodes join for other reasons, each
// node is replaced once, none that joined later is, and never are more nodes missing than allowed.
func TestReplacementsInRandomFleets(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { replaceAll(t, rand.New(rand.NewPCG(seed, 47))) })
	}
}

// replaceAll replaces the nodes of a random fleet.
func replaceAll(t *testing.T, random *rand.Rand) {
	t.Helper()
	w, size, most := newWorld(t), 3+random.IntN(8), 1+random.IntN(3)
	for i := range size {
		w.join(fmt.Sprintf("n%d", i))
	}
	w.start("patch", replacing, unavailable(fmt.Sprint(most)))
	for step := range 400 {
		w.now = w.now.Add(20 * time.Second)
		w.apply(rollout.Decide(w.snapshot()), func() bool { return random.IntN(12) == 0 })
		w.provide(random, step)
		if missing := size - w.serving(size); missing > most {
			t.Fatalf("%d of %d nodes are missing, %d may be", missing, size, most)
		}
	}
	w.checkReplaced(size)
}

// checkReplaced expects a complete rollout that has had each machine deleted once.
func (w *world) checkReplaced(size int) {
	w.t.Helper()
	r, _ := find(w.rollouts, "patch")
	if int(r.Status.DoneCount) != size || r.Status.CompletedGeneration == 0 {
		w.t.Errorf("%d nodes come to %+v", size, r.Status)
	}
	if slices.Sort(w.deleted); len(w.deleted) != size || len(slices.Compact(w.deleted)) != size {
		w.t.Errorf("of %d nodes the machines of %q were deleted", size, w.deleted)
	}
}

// provide is what NodeMaintenances, providers and an autoscaler do.
func (w *world) provide(random *rand.Rand, step int) {
	for _, m := range slices.Clone(w.maintenances) {
		switch {
		case !isLive(m) || random.IntN(2) == 0:
		case m.Spec.Stage == v1alpha1.StageComplete:
			w.finish(m.Name)
		case !isAccepted(m):
			w.accept(m.Name)
		case !isDrained(m):
			w.drain(m.Name)
		}
	}
	for _, name := range w.deleted {
		if n, at := find(w.nodes, name); at >= 0 && n.CreationTimestamp.Equal(&w.rollouts[0].CreationTimestamp) && random.IntN(3) == 0 {
			w.deleteNode(name)
			w.pending = append(w.pending, name)
		}
	}
	if len(w.pending) > 0 && random.IntN(3) == 0 {
		name := w.pending[0]
		if w.pending = w.pending[1:]; random.IntN(2) == 0 {
			name = fmt.Sprintf("new-%d", step)
		}
		w.join(name)
	}
}

// serving counts the nodes that are in service, at most so many: those of an autoscaler are more.
func (w *world) serving(size int) (count int) {
	for _, n := range w.nodes {
		if isReady(n) && !hasHolder(n) {
			count++
		}
	}
	return min(count, size)
}

func hasHolder(n *corev1.Node) bool { return n.Annotations[v1alpha1.CordonAnnotation] != "" }
