package proof

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/placement"
)

// An estimate that was told of every change says what one says that is made anew.
func TestAnEstimateIsTheSameHoweverItCameAbout(t *testing.T) {
	t.Parallel()
	var fits, nots int
	for seed := range uint64(150) {
		k := newKept(seed)
		for i := range 40 {
			switch k.IntN(10) {
			case 0:
				n := oneOf(&k.scheduling, k.world.Nodes...)
				n.Spec.Unschedulable = true
				k.estimate.Cordon(n.Name)
			case 1, 2, 3:
				k.remove()
			default:
				if k.place(t, seed, i) {
					fits++
				} else {
					nots++
				}
			}
		}
	}
	if fits < 1000 || nots < 1000 {
		t.Errorf("%d pods fit and %d do not, want many of both", fits, nots)
	}
}

// kept is an estimate, and the world as it has been told of it.
type kept struct {
	scheduling
	world    placement.World
	estimate *placement.Estimate
}

func newKept(seed uint64) *kept {
	k := &kept{scheduling: scheduling{Rand: rand.New(rand.NewPCG(seed, 2)), pool: "pool", namespaces: []string{"one", "two"}}}
	for i, name := range k.namespaces {
		ns := &corev1.Namespace{}
		ns.Name, ns.Labels = name, map[string]string{"team": k.team(i)}
		k.world.Namespaces = append(k.world.Namespaces, ns)
	}
	for i := range 3 + k.IntN(4) {
		k.world.Nodes = append(k.world.Nodes, k.node(fmt.Sprint("node-", i)))
	}
	k.estimate = placement.New(k.world)
	return k
}

func (k *kept) place(t *testing.T, seed uint64, step int) bool {
	t.Helper()
	pod := k.pod(fmt.Sprint("pod-", step))
	pod.Spec.Volumes = nil
	want, why := placement.New(k.world).Place(pod)
	if got, says := k.estimate.Place(pod); got != want {
		t.Fatalf("seed %d, step %d: %q, because %q; made anew %q, because %q\n%s", seed, step, got, says, want, why, describe(pod))
	}
	if want == "" {
		return false
	}
	pod.Spec.NodeName = want
	k.world.Pods = append(k.world.Pods, pod)
	return true
}

func (k *kept) remove() {
	if len(k.world.Pods) == 0 {
		return
	}
	i := k.IntN(len(k.world.Pods))
	k.estimate.Remove(k.world.Pods[i])
	k.world.Pods = append(k.world.Pods[:i:i], k.world.Pods[i+1:]...)
}
