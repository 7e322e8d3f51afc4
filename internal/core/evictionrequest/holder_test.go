package evictionrequest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// Who would evict a pod waits for the responders that it names, one after the other, and not
// for the evictor, nor for an Eviction that is over.
func TestWhomAnEvictionWaitsFor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod := s.pod("web-0", "example.com/first 20000", "example.com/second 10000")
	request := s.ask("example.com/upgrade", pod)
	holds := func(what, want string) {
		t.Helper()
		got := evictionrequest.HolderOf(pod, s.evictions, s.now)
		if got.Responder != want || want != "" && got.Eviction != s.evictions[len(s.evictions)-1].Name {
			t.Errorf("%s: waits for %+v, want %q", what, got, want)
		}
	}
	holds("nobody has an Eviction", "")
	s.settle()
	holds("the first one has its turn", "example.com/first")
	s.report("pod-1-web-0", "example.com/first", true)
	holds("it has completed, and the controller has not seen that", "example.com/first")
	s.settle()
	holds("the second one has its turn", "example.com/second")
	s.withdraw(request)
	s.settle()
	holds("the Eviction is over", "")
	s.intend(request, lifecyclev1alpha1.EvictionRequestIntentEviction)
	s.settle()
	holds("there is another one", "example.com/first")
	s.pass(evictionrequest.HeartbeatDeadline)
	s.pass(evictionrequest.HeartbeatDeadline)
	holds("it is the evictor's turn", "")
}

// A responder says what it says, and silence ends what it holds up also where no controller
// ends its turn; but not by a clock that nobody believes.
func TestASilentResponderHoldsNobodyForEver(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod := s.pod("web-0", "example.com/leader 20000")
	s.ask("example.com/upgrade", pod)
	s.settle()
	s.report("pod-1-web-0", "example.com/leader", false)
	words := "moving shards"
	evictionrequest.ResponderOf(&s.evictions[0].Status, "example.com/leader").Message = &words
	want := evictionrequest.Holder{Eviction: "pod-1-web-0", Responder: "example.com/leader", Message: words}
	last := s.now.Truncate(time.Second)
	for what, tc := range map[string]struct {
		now  time.Time
		want evictionrequest.Holder
	}{
		"it has just spoken":                       {last, want},
		"the controller is to end its turn":        {last.Add(evictionrequest.HeartbeatDeadline + time.Minute), want},
		"there is no controller":                   {last.Add(evictionrequest.HeartbeatDeadline + time.Minute + time.Second), evictionrequest.Holder{}},
		"nobody knows what time it is":             {time.Time{}, want},
		"the clock is behind that of the reporter": {last.Add(-time.Hour), want},
	} {
		if diff := cmp.Diff(tc.want, evictionrequest.HolderOf(pod, s.evictions, tc.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// Whoever may write Evictions holds up nobody for a responder that the pod does not name, nor
// for a pod of another UID; and lets nobody through by an Eviction of their own beside one.
func TestForgedEvictionsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod, bare := s.pod("web-0", "example.com/leader 20000"), s.pod("db-0")
	s.ask("example.com/upgrade", pod)
	s.settle()
	real := s.evictions[0]
	forge := func(change func(*lifecyclev1alpha1.Eviction)) *lifecyclev1alpha1.Eviction {
		e := real.DeepCopy()
		e.Name, e.CreationTimestamp.Time = "forged", e.CreationTimestamp.Add(-time.Hour)
		change(e)
		return e
	}
	ofBare := forge(func(e *lifecyclev1alpha1.Eviction) {
		e.Spec.Target.Pod.Name, e.Spec.Target.Pod.UID = bare.Name, bare.UID
	})
	if got := evictionrequest.HolderOf(bare, []*lifecyclev1alpha1.Eviction{ofBare}, s.now); got.Responder != "" {
		t.Errorf("a pod that names nobody waits for %+v", got)
	}
	before := forge(func(e *lifecyclev1alpha1.Eviction) { e.Spec.Target.Pod.UID = "earlier" })
	if got := evictionrequest.HolderOf(pod, []*lifecyclev1alpha1.Eviction{before}, s.now); got.Responder != "" {
		t.Errorf("a pod waits for what was asked of an earlier one: %+v", got)
	}
	for what, e := range map[string]*lifecyclev1alpha1.Eviction{
		"that is over":        forge(func(e *lifecyclev1alpha1.Eviction) { e.Status.Conditions[1].Status = "True" }),
		"that has no status":  forge(func(e *lifecyclev1alpha1.Eviction) { e.Status = lifecyclev1alpha1.EvictionStatus{} }),
		"of the evictor only": forge(func(e *lifecyclev1alpha1.Eviction) { e.Status.TargetResponders = e.Status.TargetResponders[1:] }),
	} {
		if got := evictionrequest.HolderOf(pod, []*lifecyclev1alpha1.Eviction{e, real}, s.now); got.Eviction != real.Name {
			t.Errorf("beside one %s a pod waits for %+v, want %s", what, got, real.Name)
		}
	}
}
