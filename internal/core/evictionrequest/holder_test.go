package evictionrequest_test

import (
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/difference"
)

// A responder says what it says, and silence ends what it holds up also where no controller
// ends its turn; but not by a clock that nobody believes.
func TestSilentResponderIsPassedOver(t *testing.T) {
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
		difference.None(t, what, tc.want, evictionrequest.HolderOf(pod, s.evictions, tc.now))
	}
}

// Whoever may write Evictions holds up nobody for a responder that the pod does not name, nor
// for a pod of another UID; and lets nobody through by an Eviction of their own beside one.
func TestForgedEvictionsHoldUpNoOthers(t *testing.T) {
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
