package evictionrequest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

var errStorm = errors.New("the API server is overloaded")

// A responder that says nothing for 20 minutes loses its turn, whether it has ever said
// anything or not. The API server, which judges by its own clock, lets it be taken.
func TestATurnEndsBySilence(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod := s.pod("web-0", "example.com/first 20000", "example.com/second 10000")
	request := s.ask("upgrade", "example.com/upgrade", pod)
	s.settle("web-0")
	s.must(s.reports("pod-1-web-0", "example.com/first", false))
	s.pass("pod-1-web-0", core.HeartbeatDeadline-time.Minute)
	s.settle("web-0")
	s.expect("after 19 minutes", turns(s.eviction("pod-1-web-0")), "example.com/first Active, example.com/second Inactive, "+evictor+" Inactive")
	if s.again <= 0 || s.again > time.Minute {
		t.Errorf("it looks again after %s, want the minute that is left", s.again)
	}
	s.pass("pod-1-web-0", time.Minute)
	s.settle("web-0")
	s.expect("after 20 minutes", turns(s.eviction("pod-1-web-0")), "example.com/first Interrupted, example.com/second Active, "+evictor+" Inactive")
	s.pass("pod-1-web-0", core.HeartbeatDeadline)
	s.settle("web-0")
	s.expect("after 20 more", turns(s.eviction("pod-1-web-0")), "example.com/first Interrupted, example.com/second Interrupted, "+evictor+" Active")
	s.expect("the request", s.says(request), awaiting)
}

// Whom the API server refuses a status holds up nobody else who asks for the same pod.
func TestARefusedStatusHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod := s.pod("web-0", leader+" 20000")
	cursed, other := s.ask("a-cursed", "example.com/a", pod), s.ask("b-other", "example.com/b", pod)
	s.refuse = func(request string) error {
		if request == "status of EvictionRequest a-cursed" {
			return errStorm
		}
		return nil
	}
	for range 3 {
		_ = s.step("web-0")
	}
	if err := s.step("web-0"); !errors.Is(err, errStorm) || !strings.Contains(err.Error(), "EvictionRequest a-cursed") {
		t.Errorf("it ends with %v, want that a-cursed is tried again", err)
	}
	s.expect("the Eviction", turns(s.eviction("pod-1-web-0")), leader+" Active, "+evictor+" Inactive")
	s.expect("the other", s.says(other), awaiting)
	s.expect("who is refused", s.says(cursed), "")
	s.refuse = func(string) error { return nil }
	s.settle("web-0")
	s.expect("who was refused", s.says(cursed), awaiting)
}

// Nobody is told of an Eviction that could not be written, and it is written later.
func TestNobodyIsToldWhatIsNotWritten(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"create Eviction pod-1-web-0", "status of Eviction pod-1-web-0"} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			request := s.ask("upgrade", "example.com/upgrade", s.pod("web-0", leader+" 20000"))
			// As long as nothing is asked of an Eviction, who asks is told that it will come.
			before := map[bool]string{true: "", false: awaiting}[strings.HasPrefix(refused, "create")]
			s.refuse = func(request string) error {
				if request == refused {
					return errStorm
				}
				return nil
			}
			for range 3 {
				_ = s.step("web-0")
			}
			s.expect("the request", s.says(request), before)
			s.refuse = func(string) error { return nil }
			s.settle("web-0")
			s.expect("the request in the end", s.says(request), awaiting)
			s.expect("the Eviction", turns(s.eviction("pod-1-web-0")), leader+" Active, "+evictor+" Inactive")
		})
	}
}

// An Eviction that cannot be ended is not reported as ended.
func TestAnEndIsToldAfterItIsWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod := s.pod("web-0", leader+" 20000")
	request := s.ask("upgrade", "example.com/upgrade", pod)
	s.settle("web-0")
	s.must(s.reports("pod-1-web-0", leader, true))
	s.must(s.client.Delete(s.ctx, pod, client.GracePeriodSeconds(0)))
	s.refuse = func(request string) error {
		if request == "status of Eviction pod-1-web-0" {
			return errStorm
		}
		return nil
	}
	if err := s.step("web-0"); !errors.Is(err, errStorm) {
		t.Errorf("it ends with %v, want that it is tried again", err)
	}
	s.expect("the request", s.says(request), awaiting)
	s.refuse = func(string) error { return nil }
	s.settle("web-0")
	s.expect("the request in the end", s.says(request), "Failed=False/Succeeded, TargetEvicted=True/PodDeleted: Pod web-0 is gone.")
}

// A pod that cannot be read is not gone: nothing is written about it until it can.
func TestAPodThatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	for name, unread := range map[string]string{"not in the cache": "get Pod web-0", "nor at the API server": "live get Pod web-0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			pod := s.pod("web-0", leader+" 20000")
			request := s.ask("upgrade", "example.com/upgrade", pod)
			s.must(s.client.Delete(s.ctx, pod, client.GracePeriodSeconds(0)))
			s.refuse = func(request string) error {
				if request == unread {
					return errStorm
				}
				return nil
			}
			if err := s.step("web-0"); !errors.Is(err, errStorm) || s.statuses != 0 {
				t.Errorf("it ends with %v after %d statuses, want that it is tried again after none", err, s.statuses)
			}
			s.expect("the request", s.says(request), "")
			s.refuse = func(string) error { return nil }
			s.settle("web-0")
			s.expect("the request in the end", s.says(request), "Failed=True/EvictionInvalid: Target pod not found., TargetEvicted=False/EvictionFailed")
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
			s := newStage(t)
			pod := s.pod("web-0", leader+" 20000")
			request := s.ask("upgrade", "example.com/upgrade", pod)
			s.settle("web-0")
			s.must(s.client.Delete(s.ctx, pod, client.GracePeriodSeconds(0)))
			asked := 0
			s.refuse = func(request string) error {
				if strings.HasPrefix(request, "live") {
					asked++
				}
				return nil
			}
			work := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			t.Cleanup(work.ShutDown)
			for range tc.seen {
				s.r.podHandler().Delete(s.ctx, event.TypedDeleteEvent[*corev1.Pod]{Object: pod}, work)
			}
			s.settle("web-0")
			if s.again <= 0 || s.again > core.Grace || work.Len() != tc.seen {
				t.Errorf("the responder has %s to report, want up to %s; %d are to be looked at, want %d", s.again, core.Grace, work.Len(), tc.seen)
			}
			s.pass("pod-1-web-0", core.Grace)
			// A pod of its name is another one.
			s.pod("web-0")
			s.settle("web-0")
			s.expect("the request", s.says(request), "Failed=False/Succeeded, TargetEvicted=True/PodDeleted: Pod web-0 is gone.")
			if asked != tc.asked {
				t.Errorf("the API server was asked for the pod %d times, want %d", asked, tc.asked)
			}
		})
	}
}

// Of two Evictions of one pod the older one goes on; somebody else has made the other.
func TestTwoEvictionsOfOnePod(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod := s.pod("web-0", leader+" 20000")
	request := s.ask("upgrade", "example.com/upgrade", pod)
	s.settle("web-0")
	other := s.eviction("pod-1-web-0")
	other.ObjectMeta.Name, other.ResourceVersion, other.UID, other.OwnerReferences = "pod-7-web-0", "", "", nil
	other.Status = lifecyclev1alpha1.EvictionStatus{}
	s.must(s.client.Create(s.ctx, other))
	s.settle("web-0")
	s.expect("the other", tells(s.eviction("pod-7-web-0").Status.Conditions),
		"Failed=True/EvictionInvalid: Active Eviction already exists for the same target., TargetEvicted=False/EvictionFailed")
	s.expect("the first", turns(s.eviction("pod-1-web-0")), leader+" Active, "+evictor+" Inactive")
	s.expect("the request", s.says(request), awaiting)
}

// A pod that has ended needs nobody to move it; one of a group is left alone.
func TestPodsThatAreNotEvicted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(*stage, *corev1.Pod)
		want    string
	}{
		"it has succeeded": {func(s *stage, pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodSucceeded
			s.must(s.client.Status().Update(s.ctx, pod))
		}, "Failed=False/Succeeded, TargetEvicted=True/PodTerminal: Pod web-0 has ended: Succeeded."},
		"it has failed": {func(s *stage, pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodFailed
			s.must(s.client.Status().Update(s.ctx, pod))
		}, "Failed=False/Succeeded, TargetEvicted=True/PodTerminal: Pod web-0 has ended: Failed."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			pod := s.pod("web-0", leader+" 20000")
			tc.prepare(s, pod)
			request := s.ask("upgrade", "example.com/upgrade", pod)
			s.settle("web-0")
			s.expect("the request", s.says(request), tc.want)
			s.expect("turns", turns(s.eviction("pod-1-web-0")), leader+" Inactive, "+evictor+" Inactive")
		})
	}
}

// Nothing is decided before the cache has what was last written about the pod; other pods
// are waited for by nobody.
func TestWhatWasWrittenIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, name := range []string{"web-0", "web-1"} {
		s.ask("upgrade-"+name, "example.com/upgrade", s.pod(name, leader+" 20000"))
	}
	s.must(s.step("web-0"))
	s.refuse = func(request string) error {
		if request == "get Eviction pod-1-web-0" {
			return errStorm
		}
		return nil
	}
	before := s.statuses
	if err := s.step("web-0"); !errors.Is(err, errStorm) || s.statuses != before {
		t.Errorf("it ends with %v after %d statuses, want that it waits", err, s.statuses-before)
	}
	s.settle("web-1")
	s.expect("the other", turns(s.eviction("pod-1-web-1")), leader+" Active, "+evictor+" Inactive")
	s.refuse = func(string) error { return nil }
	s.settle("web-0")
	s.expect("the first in the end", turns(s.eviction("pod-1-web-0")), leader+" Active, "+evictor+" Inactive")
}

// Who may create Evictions and nothing else gives one of another pod the name of the next one of
// a victim, which is asked for all the same, by the next number.
func TestANameOfAnEvictionIsTaken(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	victim, own := s.pod("web-0", leader+" 20000"), s.pod("own")
	_, mallory := s.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictions"}, Verbs: []string{"create"}})
	for _, name := range []string{"pod-1-web-0", "pod-7-web-0"} {
		s.must(mallory.Create(s.ctx, &lifecyclev1alpha1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name},
			Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: own.Name, UID: own.UID}}},
		}))
	}
	request := s.ask("upgrade", "example.com/upgrade", victim)
	s.settle("web-0")
	s.expect("the request", s.says(request), awaiting)
	s.expect("its Eviction", turns(s.eviction("pod-8-web-0")), leader+" Active, "+evictor+" Inactive")
	// Theirs is decided about with their own pod.
	s.expect("the Eviction that took the name", turns(s.eviction("pod-1-web-0")), "")
}

// A name that was taken a moment ago is not in the cache: nobody is told anything, and whoever
// took it has the victim looked at again.
func TestANameOfAnEvictionWasJustTaken(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	victim, own := s.pod("web-0", leader+" 20000"), s.pod("own")
	taken := &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "pod-1-web-0"},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: own.Name, UID: own.UID}}},
	}
	request := s.ask("upgrade", "example.com/upgrade", victim)
	behind := true
	s.refuse = func(asked string) error {
		switch {
		case asked == "create Eviction pod-1-web-0":
			s.must(s.client.Create(s.ctx, taken))
		case behind && asked == "get Eviction pod-1-web-0":
			return apierrors.NewNotFound(lifecyclev1alpha1.Resource("evictions"), "pod-1-web-0")
		}
		return nil
	}
	s.must(s.step("web-0"))
	s.expect("the request", s.says(request), "")
	if of := ofObject(s.ctx, taken); !slices.Contains(of, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: s.ns, Name: "web-0"}}) {
		t.Errorf("it has %v looked at, want web-0 among them", of)
	}
	behind, s.refuse = false, func(string) error { return nil }
	s.settle("web-0")
	s.expect("the request", s.says(request), awaiting)
	s.expect("its Eviction", turns(s.eviction("pod-2-web-0")), leader+" Active, "+evictor+" Inactive")
}
