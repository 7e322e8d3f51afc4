package evictionrequest_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
)

const (
	evictor  = evictionrequest.DefaultEvictor
	awaiting = said.Awaiting
	gone     = "Failed=False/Succeeded, TargetEvicted=True/PodDeleted"
	canceled = "Failed=True/CanceledDueToNoRequesters, TargetEvicted=False/EvictionFailed"
)

// The first write of a status has all that there is to say.
func TestRequestBecomesAnEviction(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod := s.pod("web-0", "ebbtide.dev/deployment-surge 10000", "example.com/leader 20000")
	request := s.ask("ebbtide.dev/node-maintenance", pod)
	s.settle()
	e := s.eviction("pod-1-web-0")
	want := &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "pod-1-web-0", UID: e.UID, Generation: 1, CreationTimestamp: metav1.Time{Time: noon},
			Labels: map[string]string{
				"ebbtide.dev/node-maintenance": "requester", "example.com/leader": "responder",
				"ebbtide.dev/deployment-surge": "responder", evictor: "responder",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "lifecycle.k8s.io/v1alpha1", Kind: "EvictionRequest", Name: request.Name, UID: request.UID,
			}},
		},
		Spec: lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: "web-0", UID: pod.UID}}},
		Status: lifecyclev1alpha1.EvictionStatus{
			ObservedGeneration: new(int64(1)),
			Requesters:         []lifecyclev1alpha1.Requester{{Name: "ebbtide.dev/node-maintenance", Intent: lifecyclev1alpha1.RequesterIntentEviction}},
			TargetResponders: []lifecyclev1alpha1.TargetResponder{
				{Name: "example.com/leader", Priority: new(int32(20000)), State: "Active"},
				{Name: "ebbtide.dev/deployment-surge", Priority: new(int32(10000)), State: "Inactive"},
				{Name: evictor, Priority: new(int32(100)), State: "Inactive"},
			},
			Responders: []lifecyclev1alpha1.ResponderStatus{
				{Name: "example.com/leader", StartTime: &metav1.Time{Time: noon}}, {Name: "ebbtide.dev/deployment-surge"}, {Name: evictor},
			},
			Conditions: []metav1.Condition{
				{Type: "Failed", Status: "False", Reason: "AwaitingEviction", LastTransitionTime: metav1.Time{Time: noon}},
				{Type: "TargetEvicted", Status: "False", Reason: "AwaitingEviction", LastTransitionTime: metav1.Time{Time: noon}},
			},
		},
	}
	difference.None(t, "Eviction", want, e)
	s.reasons("the request", request.Status.Conditions, awaiting)
	if *request.Status.ObservedGeneration != 1 || s.writes != 3 {
		t.Errorf("generation %d is observed after %d writes, want 1 after 3", *request.Status.ObservedGeneration, s.writes)
	}
}

// An invalid request is refused and gets no Eviction.
func TestInvalidRequestIsRefused(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*stage) *lifecyclev1alpha1.EvictionRequest{
		"the pod is gone": func(s *stage) *lifecyclev1alpha1.EvictionRequest {
			defer delete(s.pods, "web-0")
			return s.ask("example.com/a", s.pod("web-0"))
		},
		"the pod was made anew": func(s *stage) *lifecyclev1alpha1.EvictionRequest {
			request := s.ask("example.com/a", s.pod("web-0"))
			s.pod("web-0")
			return request
		},
		"the pod belongs to a group": func(s *stage) *lifecyclev1alpha1.EvictionRequest {
			pod := s.pod("web-0")
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{}
			return s.ask("example.com/a", pod)
		},
		"the target is no pod": func(s *stage) *lifecyclev1alpha1.EvictionRequest {
			request := s.ask("example.com/a", s.pod("web-0"))
			request.Spec.Target.Pod = nil
			return request
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			request := prepare(s)
			s.settle()
			s.reasons("the request", request.Status.Conditions, "Failed=True/EvictionInvalid, TargetEvicted=False/EvictionFailed")
			if len(s.evictions) != 0 || s.writes != 1 {
				t.Errorf("%d Evictions after %d writes, want none after 1", len(s.evictions), s.writes)
			}
			s.pass(time.Hour)
			s.withdraw(request)
			s.settle()
			if *request.Status.ObservedGeneration != 2 {
				t.Errorf("generation %d is observed, want 2", *request.Status.ObservedGeneration)
			}
		})
	}
}

// Turns end by a report or by silence, and the next begins in the same write.
func TestRespondersAreActiveByPriority(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.ask("example.com/a", s.pod("web-0", "example.com/low 1000", "example.com/high 90000", "example.com/middle 20000"))
	s.settle()
	e := s.eviction("pod-1-web-0")
	order := func(high, middle, low, last string) {
		t.Helper()
		s.expect("turns", turns(e), fmt.Sprintf("example.com/high %s, example.com/middle %s, example.com/low %s, %s %s", high, middle, low, evictor, last))
	}
	order("Active", "Inactive", "Inactive", "Inactive")
	s.pass(10 * time.Minute)
	s.report(e.Name, "example.com/high", false)
	s.pass(20*time.Minute - time.Second)
	order("Active", "Inactive", "Inactive", "Inactive")
	if s.again != time.Second {
		t.Errorf("it looks again after %s, want the second that is left", s.again)
	}
	s.pass(time.Second)
	order("Interrupted", "Active", "Inactive", "Inactive")
	if own := evictionrequest.ResponderOf(&e.Status, "example.com/middle"); !own.StartTime.Time.Equal(s.now) {
		t.Errorf("the second turn begins at %s, want %s", own.StartTime, s.now)
	}
	// Who never says anything has as long.
	s.pass(20 * time.Minute)
	order("Interrupted", "Interrupted", "Active", "Inactive")
	before := s.writes
	s.report(e.Name, "example.com/low", true)
	s.settle()
	order("Interrupted", "Interrupted", "Completed", "Active")
	if s.writes != before+1 {
		t.Errorf("a turn is handed over by %d writes, want 1", s.writes-before)
	}
	own := evictionrequest.ResponderOf(&e.Status, evictor)
	own.Message = new("DaemonSet pods are not evicted: a NodeMaintenance removes them")
	s.report(e.Name, evictor, true)
	s.settle()
	order("Interrupted", "Interrupted", "Completed", "Completed")
	s.reasons("the Eviction", e.Status.Conditions, "Failed=True/NoFurtherResponder, TargetEvicted=False/EvictionFailed")
	s.reasons("the request", s.requests["example.com-a-web-0"].Status.Conditions, reasons(e.Status.Conditions))
	s.pass(time.Hour)
	if len(s.evictions) != 1 {
		t.Errorf("%d Evictions, want no other while nobody asks anew", len(s.evictions))
	}
}

// Ebbtide was away for longer than a responder may be silent, and the responder, such as its own
// evictor, with it.
func TestResponderMayReportAfterTheControllerWasAway(t *testing.T) {
	t.Parallel()
	const silent = "Failed=True/NoFurtherResponder, TargetEvicted=False/EvictionFailed"
	for name, tc := range map[string]struct {
		reports bool
		want    string
	}{"it reports": {true, said.Awaiting}, "it stays silent": {false, silent}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.ask("example.com/a", s.pod("web-0"))
			s.settle()
			e := s.eviction("pod-1-web-0")
			s.report(e.Name, evictor, false)
			s.now = s.now.Add(evictionrequest.HeartbeatDeadline + time.Hour)
			s.began = s.now
			s.settle()
			s.reasons("the Eviction as the controller comes back", e.Status.Conditions, said.Awaiting)
			s.expect("responders", turns(e), evictor+" Active")
			if s.again != evictionrequest.HeartbeatEvery {
				t.Errorf("it looks again after %s, want one heartbeat: %s", s.again, evictionrequest.HeartbeatEvery)
			}
			if tc.reports {
				s.report(e.Name, evictor, false)
			}
			s.pass(evictionrequest.HeartbeatEvery)
			s.reasons("the Eviction one heartbeat later", e.Status.Conditions, tc.want)
		})
	}
}

// The pod may go in anybody's turn. Who moves it has a moment to say so.
func TestEvictionSucceedsWhenThePodEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		happens func(*stage, *corev1.Pod)
		reports bool
		turns   string
		words   string
	}{
		"it is deleted, and the responder has said that it is done": {
			func(s *stage, pod *corev1.Pod) { delete(s.pods, pod.Name) }, true, "Completed", gone,
		},
		"it is deleted, and the responder says nothing": {
			func(s *stage, pod *corev1.Pod) { delete(s.pods, pod.Name) }, false, "Interrupted", gone,
		},
		"it is made anew": {func(s *stage, pod *corev1.Pod) { s.pod(pod.Name) }, false, "Interrupted", gone},
		"it ends": {
			func(_ *stage, pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, false, "Interrupted",
			"Failed=False/Succeeded, TargetEvicted=True/PodTerminal",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			pod := s.pod("web-0", "example.com/leader 20000")
			request := s.ask("example.com/a", pod)
			s.settle()
			e := s.eviction("pod-1-web-0")
			tc.happens(s, pod)
			s.settle()
			s.reasons("at first", e.Status.Conditions, awaiting)
			if s.again != evictionrequest.Grace {
				t.Errorf("it looks again after %s, want %s", s.again, evictionrequest.Grace)
			}
			if tc.reports {
				s.report(e.Name, "example.com/leader", true)
				s.settle()
			} else {
				s.pass(5*time.Second - 1)
				s.reasons("a moment later", e.Status.Conditions, awaiting)
				s.pass(1)
			}
			s.reasons("in the end", e.Status.Conditions, tc.words)
			s.reasons("the request", request.Status.Conditions, tc.words)
			s.expect("turns", turns(e), "example.com/leader "+tc.turns+", "+evictor+" Inactive")
		})
	}
}

// The last who wants the eviction decides; who asks again after it has another one.
func TestLastWithdrawalCancelsTheEviction(t *testing.T) {
	t.Parallel()
	for name, withdraw := range map[string]func(*stage, *lifecyclev1alpha1.EvictionRequest){
		"by their intent": (*stage).withdraw,
		"by deletion":     func(s *stage, request *lifecyclev1alpha1.EvictionRequest) { delete(s.requests, request.Name) },
		"by deletion with a finalizer": func(s *stage, request *lifecyclev1alpha1.EvictionRequest) {
			request.DeletionTimestamp = &metav1.Time{Time: s.now}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			pod := s.pod("web-0", "example.com/leader 20000")
			first := s.ask("example.com/a", pod)
			s.settle()
			s.now = s.now.Add(time.Second)
			second := s.ask("example.com/b", pod)
			s.settle()
			e := s.eviction("pod-1-web-0")
			if len(e.OwnerReferences) != 2 || e.Labels["example.com/b"] != "requester" {
				t.Errorf("owners %v and labels %v, want both requesters", e.OwnerReferences, e.Labels)
			}
			withdraw(s, first)
			s.settle()
			s.reasons("while one is left", e.Status.Conditions, awaiting)
			s.expect("requesters", fmt.Sprint(e.Status.Requesters), "[{example.com/b Eviction} {example.com/a Withdrawn}]")
			withdraw(s, second)
			s.settle()
			s.reasons("when nobody is left", e.Status.Conditions, canceled)
			s.expect("turns", turns(e), "example.com/leader Canceled, "+evictor+" Inactive")
			third := s.ask("example.com/c", pod)
			s.settle()
			s.reasons("who asks anew", third.Status.Conditions, awaiting)
			s.expect("another Eviction", turns(s.eviction("pod-2-web-0")), "example.com/leader Active, "+evictor+" Inactive")
			s.reasons("the one before", e.Status.Conditions, canceled)
		})
	}
}

// A withdrawn intent that is meant again counts as new.
func TestRenewedIntentGetsAnotherEviction(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	request := s.ask("example.com/a", s.pod("web-0"))
	s.withdraw(request)
	s.settle()
	if len(s.evictions) != 0 {
		t.Errorf("who withdraws before anything has begun has %d Evictions", len(s.evictions))
	}
	s.reasons("the request", request.Status.Conditions, canceled)
	for n := 1; n <= 3; n++ {
		s.intend(request, lifecyclev1alpha1.EvictionRequestIntentEviction)
		s.settle()
		s.reasons("the request", request.Status.Conditions, awaiting)
		s.expect("turns", turns(s.eviction(fmt.Sprintf("pod-%d-web-0", n))), evictor+" Active")
		s.withdraw(request)
		s.settle()
		s.reasons("the request", request.Status.Conditions, canceled)
	}
}

// Somebody else may make Evictions. One of a pod is worked on.
func TestSecondEvictionOfAPodIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	request := s.ask("example.com/a", s.pod("web-0"))
	s.settle()
	other := s.eviction("pod-1-web-0").DeepCopy()
	other.Name, other.UID, other.CreationTimestamp = "mine", s.uid(), metav1.Time{Time: s.now.Add(time.Minute)}
	fresh := other.DeepCopy()
	fresh.Name, fresh.UID, fresh.Status = "fresh", s.uid(), lifecyclev1alpha1.EvictionStatus{}
	s.evictions = append(s.evictions, other, fresh)
	s.settle()
	const words = "Failed=True/EvictionInvalid, TargetEvicted=False/EvictionFailed"
	s.reasons("another with a turn", other.Status.Conditions, words)
	s.expect("its turn", turns(other), evictor+" Canceled")
	s.reasons("another without", fresh.Status.Conditions, words)
	s.reasons("the first", s.eviction("pod-1-web-0").Status.Conditions, awaiting)
	s.reasons("the request", request.Status.Conditions, awaiting)
}

// Pods of one name, one after the other, have Evictions of their own.
func TestEvictionsOfNamesakesAreNumberedOn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.ask("example.com/a", s.pod("web-0"))
	s.settle()
	pod := s.pod("web-0")
	s.ask("example.com/b", pod)
	s.settle()
	s.pass(time.Minute)
	s.reasons("the first", s.eviction("pod-1-web-0").Status.Conditions, gone)
	s.reasons("the second", s.eviction("pod-2-web-0").Status.Conditions, awaiting)
	if uid := s.eviction("pod-2-web-0").Spec.Target.Pod.UID; uid != pod.UID {
		t.Errorf("the second is of the pod with UID %s, want %s", uid, pod.UID)
	}
}

// What one right can do is bounded: a user may make any number of requests.
func TestRequestersAreBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod := s.pod("web-0")
	for n := range 300 {
		request := s.ask(fmt.Sprintf("example.com/requester-%03d", n), pod)
		request.CreationTimestamp = metav1.Time{Time: s.now.Add(time.Duration(n) * time.Second)}
	}
	s.settle()
	e := s.eviction("pod-1-web-0")
	if len(e.Status.Requesters) != 100 || len(e.OwnerReferences) != 100 || len(e.Labels) != 101 {
		t.Errorf("%d requesters, %d owners, %d labels, want 100, 100 and those with the responder", len(e.Status.Requesters), len(e.OwnerReferences), len(e.Labels))
	}
	for n := range 200 {
		s.withdraw(s.requests[fmt.Sprintf("example.com-requester-%03d-web-0", n)])
	}
	s.settle()
	s.reasons("while 100 are left", e.Status.Conditions, awaiting)
	s.expect("the first requester", fmt.Sprint(e.Status.Requesters[0]), "{example.com/requester-200 Eviction}")
	if len(e.Status.Requesters) != 100 {
		t.Errorf("%d requesters, want 100", len(e.Status.Requesters))
	}
}
