package evictionrequest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/controller/evictionrequest"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
)

var errStorm = errors.New("the API server is overloaded")

// Whom the API server refuses a status holds up nobody else who asks for the same pod.
func TestARefusedStatusHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newMemory(t)
	pod := s.Pod("web-0", leader+" 20000")
	cursed, other := s.Ask("a-cursed", "example.com/a", pod), s.Ask("b-other", "example.com/b", pod)
	s.refuse("status of EvictionRequest a-cursed")
	for range 3 {
		_ = s.Step("web-0")
	}
	if err := s.Step("web-0"); !errors.Is(err, errStorm) || !strings.Contains(err.Error(), "EvictionRequest a-cursed") {
		t.Errorf("it ends with %v, want that a-cursed is tried again", err)
	}
	s.Expect("the Eviction", said.Turns(s.Eviction("pod-1-web-0")), leader+" Active, "+evictor+" Inactive")
	s.Expect("the other", s.Says(other), awaiting)
	s.Expect("who is refused", s.Says(cursed), "")
	s.refuse("")
	s.Settle("web-0")
	s.Expect("who was refused", s.Says(cursed), awaiting)
}

// A controller that was away for longer than responders may be silent gives them one heartbeat.
func TestAControllerThatComesBackFailsNoRequest(t *testing.T) {
	t.Parallel()
	s := newMemory(t)
	request := s.Ask("upgrade", "example.com/upgrade", s.Pod("web-0"))
	s.Settle("web-0")
	s.pass("pod-1-web-0", core.HeartbeatDeadline+time.Hour)
	s.Restart()
	s.Settle("web-0")
	s.Expect("the request as it comes back", s.Says(request), awaiting)
	if s.Again <= 0 || s.Again > core.HeartbeatEvery {
		t.Errorf("it looks again after %s, want one heartbeat", s.Again)
	}
	s.Must(s.Reports("pod-1-web-0", evictor, false))
	s.Later(core.HeartbeatEvery)
	s.Settle("web-0")
	s.Expect("the request when the evictor has reported", s.Says(request), awaiting)
}

// Nobody is told of an Eviction that could not be written, and it is written later.
func TestNothingIsReportedBeforeItsRecord(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"create Eviction pod-1-web-0", "status of Eviction pod-1-web-0"} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			s := newMemory(t)
			request := s.Ask("upgrade", "example.com/upgrade", s.Pod("web-0", leader+" 20000"))
			// As long as nothing is asked of an Eviction, who asks is told that it will come.
			before := map[bool]string{true: "", false: awaiting}[strings.HasPrefix(refused, "create")]
			s.refuse(refused)
			for range 3 {
				_ = s.Step("web-0")
			}
			s.Expect("the request", s.Says(request), before)
			s.refuse("")
			s.Settle("web-0")
			s.Expect("the request in the end", s.Says(request), awaiting)
			s.Expect("the Eviction", said.Turns(s.Eviction("pod-1-web-0")), leader+" Active, "+evictor+" Inactive")
		})
	}
}

// An Eviction that cannot be ended is not reported as ended.
func TestEndIsReportedAfterItsRecord(t *testing.T) {
	t.Parallel()
	s := newMemory(t)
	pod := s.Pod("web-0", leader+" 20000")
	request := s.Ask("upgrade", "example.com/upgrade", pod)
	s.Settle("web-0")
	s.Must(s.Reports("pod-1-web-0", leader, true))
	s.Must(s.Client.Delete(s.Ctx, pod, client.GracePeriodSeconds(0)))
	s.refuse("status of Eviction pod-1-web-0")
	if err := s.Step("web-0"); !errors.Is(err, errStorm) {
		t.Errorf("it ends with %v, want that it is tried again", err)
	}
	s.Expect("the request", s.Says(request), awaiting)
	s.refuse("")
	s.Settle("web-0")
	s.Expect("the request in the end", s.Says(request), "Failed=False/Succeeded, TargetEvicted=True/PodDeleted: Pod web-0 is gone.")
}

// A pod that cannot be read is not gone: nothing is written about it until it can.
func TestAPodThatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	for name, unread := range map[string]string{"not in the cache": "get Pod web-0", "nor at the API server": "live get Pod web-0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemory(t)
			pod := s.Pod("web-0", leader+" 20000")
			request := s.Ask("upgrade", "example.com/upgrade", pod)
			s.Must(s.Client.Delete(s.Ctx, pod, client.GracePeriodSeconds(0)))
			s.refuse(unread)
			if err := s.Step("web-0"); !errors.Is(err, errStorm) || s.Statuses != 0 {
				t.Errorf("it ends with %v after %d statuses, want that it is tried again after none", err, s.Statuses)
			}
			s.Expect("the request", s.Says(request), "")
			s.refuse("")
			s.Settle("web-0")
			s.Expect("the request in the end", s.Says(request), "Failed=True/EvictionInvalid: Target pod not found., TargetEvicted=False/EvictionFailed")
		})
	}
}

// One that was once said to be gone is not asked for again: it never comes back. Of which
// the cache has seen the end is not asked for at all.
func TestAPodThatIsGoneIsAskedForOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ seen, asked int }{"the cache is behind": {0, 1}, "the cache has seen its end": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemory(t)
			pod := s.Pod("web-0", leader+" 20000")
			request := s.Ask("upgrade", "example.com/upgrade", pod)
			s.Settle("web-0")
			s.Must(s.Client.Delete(s.Ctx, pod, client.GracePeriodSeconds(0)))
			asked := 0
			s.Refuse = func(request string) error {
				if strings.HasPrefix(request, "live") {
					asked++
				}
				return nil
			}
			work := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			t.Cleanup(work.ShutDown)
			for range tc.seen {
				evictionrequest.PodHandler(s.Reconciler).Delete(s.Ctx, event.TypedDeleteEvent[*corev1.Pod]{Object: pod}, work)
			}
			s.Settle("web-0")
			if s.Again <= 0 || s.Again > core.Grace || work.Len() != tc.seen {
				t.Errorf("the responder has %s to report, want up to %s; %d are to be looked at, want %d", s.Again, core.Grace, work.Len(), tc.seen)
			}
			s.pass("pod-1-web-0", core.Grace)
			// A pod of its name is another one.
			s.Pod("web-0")
			s.Settle("web-0")
			s.Expect("the request", s.Says(request), "Failed=False/Succeeded, TargetEvicted=True/PodDeleted: Pod web-0 is gone.")
			if asked != tc.asked {
				t.Errorf("the API server was asked for the pod %d times, want %d", asked, tc.asked)
			}
		})
	}
}

// A pod that has ended needs nobody to move it.
func TestEndedPodNeedsNoResponder(t *testing.T) {
	t.Parallel()
	s := newMemory(t)
	pod := s.Pod("web-0", leader+" 20000")
	pod.Status.Phase = corev1.PodFailed
	s.Must(s.Client.Status().Update(s.Ctx, pod))
	request := s.Ask("upgrade", "example.com/upgrade", pod)
	s.Settle("web-0")
	s.Expect("the request", s.Says(request), "Failed=False/Succeeded, TargetEvicted=True/PodTerminal: Pod web-0 has ended: Failed.")
	s.Expect("turns", said.Turns(s.Eviction("pod-1-web-0")), leader+" Inactive, "+evictor+" Inactive")
}

// Nothing is decided before the cache has what was last written about the pod; other pods
// are waited for by nobody.
func TestOwnWritesAreWaitedFor(t *testing.T) {
	t.Parallel()
	s := newMemory(t)
	for _, name := range []string{"web-0", "web-1"} {
		s.Ask("upgrade-"+name, "example.com/upgrade", s.Pod(name, leader+" 20000"))
	}
	s.Must(s.Step("web-0"))
	s.refuse("get Eviction pod-1-web-0")
	before := s.Statuses
	if err := s.Step("web-0"); !errors.Is(err, errStorm) || s.Statuses != before {
		t.Errorf("it ends with %v after %d statuses, want that it waits", err, s.Statuses-before)
	}
	s.Settle("web-1")
	s.Expect("the other", said.Turns(s.Eviction("pod-1-web-1")), leader+" Active, "+evictor+" Inactive")
	s.refuse("")
	s.Settle("web-0")
	s.Expect("the first in the end", said.Turns(s.Eviction("pod-1-web-0")), leader+" Active, "+evictor+" Inactive")
}

// A name that was taken a moment ago is not in the cache: nobody is told anything, and whoever
// took it has the victim looked at again.
func TestANameOfAnEvictionWasJustTaken(t *testing.T) {
	t.Parallel()
	s := newMemory(t)
	victim, own := s.Pod("web-0", leader+" 20000"), s.Pod("own")
	taken := &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "pod-1-web-0"},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: own.Name, UID: own.UID}}},
	}
	request := s.Ask("upgrade", "example.com/upgrade", victim)
	behind := true
	s.Refuse = func(asked string) error {
		switch {
		case asked == "create Eviction pod-1-web-0":
			s.Must(s.Client.Create(s.Ctx, taken))
		case behind && asked == "get Eviction pod-1-web-0":
			return apierrors.NewNotFound(lifecyclev1alpha1.Resource("evictions"), "pod-1-web-0")
		}
		return nil
	}
	s.Must(s.Step("web-0"))
	s.Expect("the request", s.Says(request), "")
	if of := evictionrequest.OfEviction(s.Ctx, taken); !slices.Contains(of, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: s.Namespace, Name: "web-0"}}) {
		t.Errorf("it has %v looked at, want web-0 among them", of)
	}
	behind, s.Refuse = false, func(string) error { return nil }
	s.Settle("web-0")
	s.Expect("the request", s.Says(request), awaiting)
	s.Expect("its Eviction", said.Turns(s.Eviction("pod-2-web-0")), leader+" Active, "+evictor+" Inactive")
}
