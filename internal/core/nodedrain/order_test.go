package nodedrain

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// life is a pod of a random node and what the test knows of it.
type life struct {
	pod   *corev1.Pod
	order int32
	// drained, completing and unknown are what is to become of it.
	drained, completing, unknown bool
}

func randomLife(r *rand.Rand, i int) life {
	p := aged(time.Duration(r.IntN(5))*time.Minute, pod(fmt.Sprintf("p%02d", i)))
	one := life{pod: p}
	switch r.IntN(8) {
	case 0:
		skipped(p)
	case 1:
		ofDaemonSet("alive", p)
	case 2:
		waitCompleted(p)
		one.completing = true
	case 3:
		unjudged(p)
		one.unknown = true
	default:
		one.order, one.drained = orders[r.IntN(len(orders))], true
		ordered(one.order, p)
	}
	if r.IntN(4) == 0 {
		terminating(time.Duration(r.IntN(60))*time.Second, p)
	}
	if one.completing && r.IntN(3) == 0 {
		phase(corev1.PodSucceeded, p)
	}
	return one
}

// holds is true if those of a higher order have to wait for the pod.
func (l life) holds() bool {
	return l.drained || l.unknown || l.completing && l.pod.Status.Phase == corev1.PodRunning
}

// evictable asks of every pod whether any other stands before it.
func evictable(lives []life) sets.Set[string] {
	evict := sets.New[string]()
	for _, one := range lives {
		allowed := one.drained && one.pod.DeletionTimestamp == nil
		for _, other := range lives {
			allowed = allowed && (!other.holds() || other.order >= one.order)
		}
		if allowed {
			evict.Insert(one.pod.Name)
		}
	}
	return evict
}

func waitedFor(lives []life) sets.Set[string] {
	waited := sets.New[string]()
	for _, one := range lives {
		if one.holds() {
			waited.Insert(one.pod.Name)
		}
	}
	return waited
}

func podsOf(lives []life) (pods []*corev1.Pod) {
	for _, one := range lives {
		pods = append(pods, one.pod)
	}
	return pods
}

func namesOf(pods []*corev1.Pod) sets.Set[string] {
	all := sets.New[string]()
	for _, p := range pods {
		all.Insert(p.Name)
	}
	return all
}

func TestOrdersAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 1))
	for round := range 2000 {
		var lives []life
		for i := range r.IntN(12) {
			lives = append(lives, randomLife(r, i))
		}
		d := Decide(snapshot(podsOf(lives)...))
		if diff := cmp.Diff(evictable(lives), namesOf(d.Evict)); diff != "" {
			t.Fatalf("round %d: evicted now (-want +got):\n%s", round, diff)
		}
		waited := waitedFor(lives)
		if diff := cmp.Diff(waited, namesOf(d.Left())); diff != "" || len(waited) != len(d.Left()) {
			t.Fatalf("round %d: waited for (-want +got):\n%s", round, diff)
		}
		if d.Done != (len(waited) == 0) {
			t.Fatalf("round %d: done is %v and %v are left", round, d.Done, waited)
		}
	}
}

// A drain comes to its end by what it does itself, one pod after the other and in
// their order, whatever the kubelet takes its time for.
func TestDrainsEnd(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		var lives []life
		for i := range 10 {
			if one := randomLife(r, i); !one.unknown {
				lives = append(lives, one)
			}
		}
		left := drainAll(t, r, lives)
		if d := Decide(snapshot(podsOf(left)...)); !d.Done {
			t.Fatalf("seed %d: the drain does not end, it says %s", seed, d.Message)
		}
	}
}

// drainAll does to the pods what is decided until nothing changes any more.
func drainAll(t *testing.T, r *rand.Rand, lives []life) []life {
	t.Helper()
	for range 500 {
		evict := namesOf(Decide(snapshot(podsOf(lives)...)).Evict)
		if len(lives) == 0 {
			return nil
		}
		i := r.IntN(len(lives))
		switch one := lives[i]; {
		case evict.Has(one.pod.Name):
			terminating(time.Minute, one.pod)
			for _, other := range lives {
				if other.holds() && other.order < one.order {
					t.Fatalf("%s of order %d is evicted before %s of order %d", one.pod.Name, one.order, other.pod.Name, other.order)
				}
			}
		case one.pod.DeletionTimestamp != nil:
			lives = append(lives[:i:i], lives[i+1:]...)
		case one.completing:
			phase(corev1.PodSucceeded, one.pod)
		}
	}
	return lives
}

// What is said and done must not depend on the order in which a cache lists pods.
func TestOrderOfPodsMakesNoDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 3))
	var lives []life
	for i := range 40 {
		lives = append(lives, randomLife(r, i))
	}
	s := unreachable(snapshot(podsOf(lives)...))
	for i, p := range s.Pods {
		s.Answers[p.UID] = []evacuation.Outcome{budgeted, throttled, several, silent}[i%4]
	}
	want := Decide(s)
	for range 20 {
		r.Shuffle(len(s.Pods), func(i, j int) { s.Pods[i], s.Pods[j] = s.Pods[j], s.Pods[i] })
		if diff := cmp.Diff(want, Decide(s)); diff != "" {
			t.Fatalf("decision (-want +got):\n%s", diff)
		}
	}
}

func TestGivenIsNotChanged(t *testing.T) {
	s := snapshot(ordered(1, pod("b")), pod("a"), waitCompleted(pod("c")))
	s.Answers[types.UID("uid-of-a")] = budgeted
	before := make([]*corev1.Pod, 0, len(s.Pods))
	for _, p := range s.Pods {
		before = append(before, p.DeepCopy())
	}
	Decide(s)
	if diff := cmp.Diff(before, s.Pods); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
}
