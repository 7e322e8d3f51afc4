package evacuation

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/fault"
)

var dawn = time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)

// stage is a small cluster on which reconciliations are stepped by hand. What
// asks to be reconciled is queued; time moves only when it is told to.
type stage struct {
	t          *testing.T
	api        *fault.Server
	clock      *clocktesting.FakeClock
	reconciler *reconciler

	queue  []types.NamespacedName
	timers map[types.NamespacedName]time.Time

	// skewed is true while the clock is not trusted.
	skewed bool

	// answers are what the API server says to an eviction, by pod; absent evicts.
	answers map[string]metav1.Status
	// evicted and refused count the requests to evict, by pod.
	evicted, refused map[string]int
}

func newStage(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	s := &stage{
		t:       t,
		api:     fault.NewServer(t, objects...),
		clock:   clocktesting.NewFakeClock(dawn),
		timers:  map[types.NamespacedName]time.Time{},
		answers: map[string]metav1.Status{},
		evicted: map[string]int{},
		refused: map[string]int{},
	}
	s.restart()
	return s
}

// now is what time it is, and whether the clock is skewed.
func (s *stage) now() (time.Time, bool) { return s.clock.Now(), s.skewed }

// restart begins with a new controller that remembers nothing.
func (s *stage) restart() {
	s.api.Revive()
	s.reconciler = &reconciler{
		client: s.api.Manager, bulk: s.api.Manager, live: s.api.Manager, emit: s.api.Emit, now: s.now, clock: s.clock,
		metrics: newMetrics(prometheus.NewRegistry()),
	}
	s.reconciler.evictions = eviction.NewDispatcher(eviction.DispatcherOptions{
		Reader: s.api.Manager, Clock: s.clock, Now: kube.Now(s.now).Earliest, Jitter: func() float64 { return 0 },
	}).Caller(eviction.CallerOptions{Evictor: s, Wake: func(keys ...types.NamespacedName) { s.queue = append(s.queue, keys...) }})
	s.reconciler.sweepLater = func(namespace string, after time.Duration) {
		s.timers[types.NamespacedName{Namespace: namespace}] = s.clock.Now().Add(after)
	}
	s.queue, s.timers = nil, map[types.NamespacedName]time.Time{}
	list := &v1alpha1.EvacuationList{}
	s.must(s.api.List(s.t.Context(), list))
	for i := range list.Items {
		s.queue = append(s.queue, client.ObjectKeyFromObject(&list.Items[i]))
	}
}

// Evict is the API server's eviction subresource.
func (s *stage) Evict(ctx context.Context, pod *corev1.Pod, _ *int64) metav1.Status {
	var answer metav1.Status
	err := s.api.Write("evict Pod "+pod.Name, func() error { answer = s.answer(ctx, pod); return nil })
	if err != nil {
		return metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	return answer
}

func (s *stage) answer(ctx context.Context, pod *corev1.Pod) metav1.Status {
	if refusal, refused := s.answers[pod.Name]; refused {
		s.refused[pod.Name]++
		return refusal
	}
	stored := &corev1.Pod{}
	if err := s.api.Get(ctx, client.ObjectKeyFromObject(pod), stored); err != nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), pod.Name).Status()
	}
	if stored.UID != pod.UID {
		s.t.Errorf("pod %s is evicted by the UID %s, it has %s", pod.Name, pod.UID, stored.UID)
	}
	s.evicted[pod.Name]++
	s.must(s.api.Delete(ctx, stored))
	s.queue = append(s.queue, types.NamespacedName{Namespace: pod.Namespace, Name: core.Name(stored)})
	return metav1.Status{Status: metav1.StatusSuccess}
}

// settle reconciles until nothing is queued, and returns the errors.
func (s *stage) settle() []error {
	s.t.Helper()
	var failures []error
	for step := 0; len(s.queue) > 0; step++ {
		if step > 1000 {
			s.t.Fatalf("the controller never comes to rest, still queued: %v", s.queue)
		}
		key := s.queue[0]
		s.queue = s.queue[1:]
		before := s.version(key)
		result, err := s.reconciler.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: key})
		delete(s.timers, key)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if result.RequeueAfter > 0 {
			s.timers[key] = s.clock.Now().Add(result.RequeueAfter)
		}
		if s.version(key) != before {
			s.queue = append(s.queue, key)
		}
	}
	return failures
}

// calm settles and expects no errors.
func (s *stage) calm() {
	s.t.Helper()
	if failures := s.settle(); len(failures) > 0 {
		s.t.Fatalf("reconciliations failed: %v", failures)
	}
}

// version changes whenever the evacuation does.
func (s *stage) version(key types.NamespacedName) string {
	e := &v1alpha1.Evacuation{}
	if err := s.api.Get(s.t.Context(), key, e); err != nil {
		return "gone"
	}
	return e.ResourceVersion
}

// pass lets time pass, one timer after the other.
func (s *stage) pass(d time.Duration) {
	s.t.Helper()
	end := s.clock.Now().Add(d)
	for range 10_000 {
		next := end
		for _, due := range s.timers {
			if due.Before(next) {
				next = due
			}
		}
		s.clock.SetTime(next)
		for key, due := range s.timers {
			if !due.After(next) {
				s.queue = append(s.queue, key)
			}
		}
		if len(s.queue) == 0 {
			return
		}
		s.calm()
	}
	s.t.Fatal("there is no end to the timers")
}

// budgetEvent tells the controller of a budget, as the watch does.
func (s *stage) budgetEvent(before, after *policyv1.PodDisruptionBudget) {
	s.reconciler.evictions.Budgets().Update(s.t.Context(),
		event.TypedUpdateEvent[*policyv1.PodDisruptionBudget]{ObjectOld: before, ObjectNew: after}, stageQueue{stage: s})
}

// budgetDeleted deletes a budget and tells the controller.
func (s *stage) budgetDeleted(b *policyv1.PodDisruptionBudget) {
	s.must(s.api.Delete(s.t.Context(), b))
	s.reconciler.evictions.Budgets().Delete(s.t.Context(), event.TypedDeleteEvent[*policyv1.PodDisruptionBudget]{Object: b}, stageQueue{stage: s})
}

// podEvent tells the controller that a pod is gone.
func (s *stage) podDeleted(pod *corev1.Pod) {
	eviction.LeavingPods(s.reconciler.cleanLater).Delete(s.t.Context(),
		event.TypedDeleteEvent[*corev1.Pod]{Object: pod}, stageQueue{stage: s})
}

// stageQueue is the work queue of the event handlers.
type stageQueue struct {
	eviction.Requests
	stage *stage
}

func (q stageQueue) AddAfter(request reconcile.Request, _ time.Duration) {
	q.stage.queue = append(q.stage.queue, request.NamespacedName)
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// evacuation returns the Evacuation of a pod, nil if it is gone.
func (s *stage) evacuation(pod *corev1.Pod) *v1alpha1.Evacuation {
	s.t.Helper()
	e := &v1alpha1.Evacuation{}
	err := s.api.Get(s.t.Context(), types.NamespacedName{Namespace: pod.Namespace, Name: core.Name(pod)}, e)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return e
}

func (s *stage) podExists(pod *corev1.Pod) bool {
	s.t.Helper()
	err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
	if apierrors.IsNotFound(err) {
		return false
	}
	s.must(err)
	return true
}

// update changes an evacuation as an evacuator or an instigator does.
func (s *stage) update(pod *corev1.Pod, change func(*v1alpha1.Evacuation)) {
	s.t.Helper()
	e := s.evacuation(pod)
	change(e)
	status := e.Status
	s.must(s.api.Update(s.t.Context(), e))
	e.Status = status
	s.must(s.api.Status().Update(s.t.Context(), e))
	s.queue = append(s.queue, client.ObjectKeyFromObject(e))
}
