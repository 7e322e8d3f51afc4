package evictionrequest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
)

var runs = flag.Int("runs", 1_000, "random evictions that are simulated")

// drama is one pod, up to three requesters and four responders that do as they like.
type drama struct {
	*stage
	random *rand.Rand
	pod    *corev1.Pod
	// seen is what each Eviction has said last.
	seen map[string]lifecyclev1alpha1.EvictionStatus
}

func newDrama(t *testing.T, seed uint64) *drama {
	d := &drama{stage: newStage(t), random: rand.New(rand.NewPCG(seed, 7)), seen: map[string]lifecyclev1alpha1.EvictionStatus{}}
	var responders []string
	for n := range d.random.IntN(4) {
		responders = append(responders, fmt.Sprintf("r%d.example.com/x %d", n, 1000+d.random.IntN(3)))
	}
	d.pod = d.stage.pod("web-0", responders...)
	d.ask("a.example.com/x", d.pod)
	return d
}

// happens is one thing that somebody does.
func (d *drama) happens() {
	requester := fmt.Sprintf("%c.example.com/x", 'a'+d.random.IntN(3))
	request := d.requests[strings.ReplaceAll(requester, "/", "-")+"-web-0"]
	switch choice := d.random.IntN(24); {
	case choice < 3 && request == nil:
		d.ask(requester, d.pod)
	case choice < 5 && request != nil:
		d.withdraw(request)
	case choice < 7 && request != nil:
		d.intend(request, lifecyclev1alpha1.EvictionRequestIntentEviction)
	case choice == 7 && request != nil:
		delete(d.requests, request.Name)
	case choice == 8 && request != nil:
		request.DeletionTimestamp = &metav1.Time{Time: d.now}
	case choice < 15:
		d.responds()
	case choice < 20:
		d.now = d.now.Add(time.Duration(d.random.Int64N(int64(15 * time.Minute))))
	case choice == 20:
		d.now = d.now.Add(time.Duration(d.random.IntN(9)) * time.Second)
	case choice == 21 && d.random.IntN(4) == 0:
		delete(d.pods, "web-0")
	case choice == 22 && d.random.IntN(4) == 0:
		d.pod.Status.Phase = corev1.PodSucceeded
	default:
		// The controller is killed in the middle of its next writes.
		d.left = d.random.IntN(4)
	}
}

func (d *drama) responds() {
	for _, e := range d.evictions {
		own := evictionrequest.Active(&e.Status)
		if evictionrequest.Final(&e.Status) || own == nil {
			continue
		}
		own.HeartbeatTime = &metav1.Time{Time: d.now.Truncate(time.Second)}
		if d.random.IntN(2) == 0 && own.CompletionTime == nil {
			own.CompletionTime = own.HeartbeatTime
		}
	}
}

// holds checks what always holds.
func (d *drama) holds() {
	d.t.Helper()
	going := 0
	for _, e := range d.evictions {
		before := d.seen[e.Name]
		d.seen[e.Name] = *e.Status.DeepCopy()
		if !evictionrequest.Final(&e.Status) {
			going++
		}
		if evictionrequest.Final(&before) && said.Conditions(before.Conditions) != said.Conditions(e.Status.Conditions) {
			d.t.Fatalf("%s was final and is not what it was: %s, then %s", e.Name, said.Conditions(before.Conditions), said.Conditions(e.Status.Conditions))
		}
		d.inOrder(e, &before)
	}
	if going > 1 {
		d.t.Fatalf("%d Evictions of one pod go on", going)
	}
}

func stateOf(status *lifecyclev1alpha1.EvictionStatus, name string) lifecyclev1alpha1.ResponderStateType {
	for _, one := range status.TargetResponders {
		if one.Name == name {
			return one.State
		}
	}
	return ""
}

func (d *drama) inOrder(e *lifecyclev1alpha1.Eviction, before *lifecyclev1alpha1.EvictionStatus) {
	d.t.Helper()
	ordered := slices.Clone(e.Status.TargetResponders)
	evictionrequest.Sort(ordered)
	active, inactive := 0, false
	for _, one := range ordered {
		was := stateOf(before, one.Name)
		switch one.State {
		case lifecyclev1alpha1.ResponderStateActive:
			active++
		case lifecyclev1alpha1.ResponderStateInactive:
			inactive = true
		}
		if inactive && one.State != lifecyclev1alpha1.ResponderStateInactive {
			d.t.Fatalf("%s has had its turn too early: %s", one.Name, turns(e))
		}
		over := was != "" && was != lifecyclev1alpha1.ResponderStateActive && was != lifecyclev1alpha1.ResponderStateInactive
		if over && one.State != was {
			d.t.Fatalf("%s was %s and is %s", one.Name, was, one.State)
		}
	}
	if final := evictionrequest.Final(&e.Status); active > 1 || final && active > 0 {
		d.t.Fatalf("%d are active, and the Eviction is over: %v: %s", active, final, turns(e))
	}
}

// Whatever requesters, responders, the pod and crashes do, one responder has the turn, in
// their order, nothing that is final changes, and it ends.
func TestRandomEvictions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*runs) {
		d := newDrama(t, seed)
		for range 5 + d.random.IntN(40) {
			d.happens()
			d.goesOn()
		}
		for range 6 {
			d.pass(evictionrequest.HeartbeatDeadline)
			d.holds()
		}
		for _, e := range d.evictions {
			if !evictionrequest.Final(&e.Status) {
				t.Fatalf("seed %d: %s has not ended after two hours of silence: %s, %s", seed, e.Name, turns(e), said.Conditions(e.Status.Conditions))
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// goesOn has the controller act, and begin again if it is killed meanwhile.
func (d *drama) goesOn() {
	d.t.Helper()
	for d.step() {
		d.holds()
		if d.left == 0 {
			d.left, d.ended = -1, map[types.UID]time.Time{}
		}
	}
	d.left = -1
}

// FuzzSort compares with a reading of the rules, pair by pair: who is before all that are
// left comes next.
func FuzzSort(f *testing.F) {
	f.Add(int32(1000), "b.example.com/x", int32(1000), "a.example.com/x", int32(100), "example.com/x")
	f.Add(int32(1), "a.b/c", int32(1), "a.b", int32(1), "b/c")
	f.Fuzz(func(t *testing.T, p1 int32, n1 string, p2 int32, n2 string, p3 int32, n3 string) {
		all := []lifecyclev1alpha1.TargetResponder{{Name: n1, Priority: &p1}, {Name: n2, Priority: &p2}, {Name: n3, Priority: &p3}}
		evictionrequest.Sort(all)
		for i := range all[1:] {
			if before(all[i+1], all[i]) {
				t.Errorf("%d %q comes after %d %q", *all[i+1].Priority, all[i+1].Name, *all[i].Priority, all[i].Name)
			}
		}
	})
}

// before is true if a is picked first by the words of the API: higher priorities first;
// with the same one, labels of the domain from the top one on, and the key last.
func before(a, b lifecyclev1alpha1.TargetResponder) bool {
	if *a.Priority != *b.Priority {
		return *a.Priority > *b.Priority
	}
	domainA, keyA, _ := strings.Cut(a.Name, "/")
	domainB, keyB, _ := strings.Cut(b.Name, "/")
	labelsA, labelsB := strings.Split(domainA, "."), strings.Split(domainB, ".")
	for n := 1; n <= min(len(labelsA), len(labelsB)); n++ {
		if x, y := labelsA[len(labelsA)-n], labelsB[len(labelsB)-n]; x != y {
			return x < y
		}
	}
	if len(labelsA) != len(labelsB) {
		return len(labelsA) < len(labelsB)
	}
	return keyA < keyB
}
