package evacuation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// temper is how an evacuator behaves.
type temper int

const (
	diligent  temper = iota // reports and moves the pod in the end
	dead                    // never says anything
	giveUp                  // completes without moving the pod
	returning               // is silent past its deadline, then reports again
	liar                    // reports from the future
	forbids                 // forbids to cancel, then moves the pod
	tempers
)

// world is one evacuation, its pod, its evacuators and an API server that
// refuses some evictions.
type world struct {
	random   *rand.Rand
	snapshot evacuation.Snapshot
	tempers  map[string]temper
	refusals int
	deleted  bool
	counter  int32
	// calls are in how many more steps somebody calls the eviction API.
	calls int
	// silentFor counts the steps that the active evacuator has been silent.
	silentFor int
}

func newWorld(seed uint64) *world {
	random := rand.New(rand.NewPCG(seed, 1))
	pod := barePod()
	pod.Annotations = map[string]string{}
	w := &world{random: random, tempers: map[string]temper{}, refusals: random.IntN(4)}
	for i := range random.IntN(5) {
		class := fmt.Sprintf("evacuator-%d.example.com", i)
		pod.Annotations[v1alpha1.EvacuatorAnnotationPrefix+class] = fmt.Sprint(random.IntN(3))
		w.tempers[class] = temper(random.IntN(int(tempers)))
	}
	w.snapshot = of(pod)
	if random.IntN(2) == 0 {
		w.snapshot.Evacuation.Spec.Evacuators = nil
	}
	if random.IntN(2) == 0 {
		w.calls = random.IntN(20)
	}
	return w
}

func (w *world) status() *v1alpha1.EvacuationStatus { return &w.snapshot.Evacuation.Status }

// apply carries a decision out, as the controller does.
func (w *world) apply(t *testing.T, d evacuation.Decision) {
	t.Helper()
	e := w.snapshot.Evacuation
	if d.Evacuators != nil {
		e.Spec.Evacuators = d.Evacuators
		return
	}
	if d.Status != nil {
		if d.Status.ActiveEvacuatorClass != e.Status.ActiveEvacuatorClass {
			w.silentFor = 0
		}
		e.Status = *d.Status
	}
	e.Finalizers = slices.DeleteFunc(slices.Clone(e.Finalizers), func(f string) bool { return slices.Contains(d.DropFinalizers, f) })
	if d.Evict {
		w.evict(t)
	}
	if d.Delete && len(e.Finalizers) == 0 {
		w.deleted = true
	}
}

func (w *world) evict(t *testing.T) {
	t.Helper()
	if w.snapshot.Pod.UID != w.snapshot.Evacuation.Spec.PodRef.UID {
		t.Fatalf("a pod of another UID is evicted: %s", w.snapshot.Pod.UID)
	}
	if class := w.status().ActiveEvacuatorClass; class != "" && w.hasItsTurn() {
		t.Fatalf("the pod is evicted while %s has its turn", class)
	}
	if w.refusals > 0 {
		w.refusals--
		*w.status() = evacuation.Refuse(*w.status(), refusedBy(v1alpha1.BlockerPDBExhausted, "no", 1), w.snapshot.Now)
		return
	}
	w.snapshot.Pod = nil
}

// hasItsTurn is the rule in its simplest words: not completed and heard of
// within the deadline.
func (w *world) hasItsTurn() bool {
	silence := w.snapshot.Now.Sub(w.status().EvacuationProgressTimestamp.Time)
	return !w.status().ActiveEvacuatorCompleted && silence < 1800*time.Second
}

// live lets the active evacuator and the rest of the cluster do something.
func (w *world) live(t *testing.T) {
	t.Helper()
	w.snapshot.Now = w.snapshot.Now.Add(10 * time.Minute)
	w.silentFor++
	if w.calls > 0 {
		w.calls--
		w.call(t)
	}
	if w.snapshot.Pod == nil {
		return
	}
	switch w.random.IntN(60) {
	case 0:
		w.snapshot.Pod.UID = "another"
		return
	case 1:
		w.snapshot.Evacuation.Finalizers = nil
		return
	}
	w.act()
}

// call is a call of the eviction API by somebody who knows nothing of evacuators.
func (w *world) call(t *testing.T) {
	t.Helper()
	e := w.snapshot.Evacuation
	verdict := evacuation.Admit(evacuation.Call{Snapshot: w.snapshot})
	if verdict.Attempt != "" {
		e.Annotations[v1alpha1.EvictionAttemptAnnotation] = verdict.Attempt
	}
	if verdict.Join {
		e.Finalizers = append(e.Finalizers, v1alpha1.EvictionInstigator)
	}
	switch state := evacuation.Decide(w.snapshot).State; {
	case verdict.Create != nil:
		t.Fatal("a second evacuation of the pod is created")
	case verdict.Admitted && state == evacuation.StateEvacuating:
		t.Fatalf("the pod is evicted by others while %s has its turn", w.status().ActiveEvacuatorClass)
	case !verdict.Admitted && (state != evacuation.StateEvacuating || verdict.Message == ""):
		t.Fatalf("a caller waits with the words %q while the evacuation is %s", verdict.Message, state)
	case verdict.Admitted && w.refusals == 0:
		w.snapshot.Pod = nil
	}
}

func (w *world) act() {
	status := w.status()
	if status.ActiveEvacuatorClass == "" {
		return
	}
	progress := &metav1.Time{Time: w.snapshot.Now}
	switch w.tempers[status.ActiveEvacuatorClass] {
	case diligent:
		status.EvacuationProgressTimestamp = progress
		if w.silentFor > 6 {
			w.snapshot.Pod = nil
		}
	case giveUp:
		status.EvacuationProgressTimestamp = progress
		status.ActiveEvacuatorCompleted = w.silentFor > 2
	case returning:
		if w.silentFor == 5 {
			status.EvacuationProgressTimestamp = progress
		}
	case liar:
		if w.silentFor < 3 {
			status.EvacuationProgressTimestamp = &metav1.Time{Time: w.snapshot.Now.AddDate(1, 0, 0)}
		}
	case forbids:
		status.EvacuationCancellationPolicy = v1alpha1.CancellationForbid
		status.EvacuationProgressTimestamp = progress
		if w.silentFor > 4 {
			w.snapshot.Pod = nil
		}
	case dead, tempers:
	}
}

func (w *world) checkInvariants(t *testing.T, d evacuation.Decision) {
	t.Helper()
	if d.Message == "" || d.State == "" {
		t.Fatalf("a decision without words: %+v", d)
	}
	if d.Evict && (d.Status != nil || d.Delete) {
		t.Fatalf("the pod is evicted and something else happens: %+v", d)
	}
	if d.State == evacuation.StateWithdrawn && w.calls > 0 {
		t.Fatalf("a request is withdrawn that is still made: %s", d.Message)
	}
	if counter := w.status().FailedEvictionCounter; counter < w.counter {
		t.Fatalf("the counter fell from %d to %d", w.counter, counter)
	}
	w.counter = w.status().FailedEvictionCounter
}

func TestEveryEvacuationEnds(t *testing.T) {
	reached := map[evacuation.State]int{}
	for seed := range uint64(2000) {
		w := newWorld(seed)
		var d evacuation.Decision
		for step := 0; step < 200 && !w.deleted; step++ {
			d = evacuation.Decide(w.snapshot)
			reached[d.State]++
			w.apply(t, d)
			w.checkInvariants(t, d)
			w.live(t)
		}
		if !w.deleted {
			t.Fatalf("seed %d: the evacuation is still %s: %s", seed, d.State, d.Message)
		}
	}
	for _, state := range []evacuation.State{evacuation.StateDone, evacuation.StateCancelled, evacuation.StateWithdrawn} {
		if reached[state] == 0 {
			t.Errorf("no simulation is ever %s: %v", state, reached)
		}
	}
}
