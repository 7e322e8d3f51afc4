package evacuation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/eviction"
)

// lockedBudget is the budget web, locked from dawn until a time.
func lockedBudget(allowed int32, until time.Duration) *policyv1.PodDisruptionBudget {
	b := webBudget(allowed)
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.LockAnnotation, budget.Lock{
		Holder: "dba@example.com", Reason: "defragmentation",
		AcquiredAt: metav1.Time{Time: dawn}, ExpiresAt: metav1.Time{Time: dawn.Add(until)},
	}.Write())
	return b
}

func lockedOut(until time.Duration) string {
	return fmt.Sprintf("PodDisruptionBudget shop/web is locked by dba@example.com until %s: defragmentation", dawn.Add(until).Format(time.RFC3339))
}

// change stores a budget and tells the controller of it.
func (s *stage) change(before, after *policyv1.PodDisruptionBudget) {
	s.t.Helper()
	stored := &policyv1.PodDisruptionBudget{}
	s.must(s.api.Get(s.t.Context(), client.ObjectKeyFromObject(after), stored))
	stored.Annotations = after.Annotations
	s.must(s.api.Update(s.t.Context(), stored))
	s.budgetEvent(before, after)
	s.calm()
}

func TestALockedBudgetIsTold(t *testing.T) {
	t.Parallel()
	pods := []*corev1.Pod{webPod(0), webPod(1)}
	locked := lockedBudget(2, time.Hour)
	s := newStage(t, locked, pods[0], pods[1], asked(pods[0]), asked(pods[1]))
	s.calm()
	s.pass(eviction.ReportAfter)
	for _, pod := range pods {
		e := s.evacuation(pod)
		expectRefusal(t, e.Status, v1alpha1.BlockerPDBLocked, lockedOut(time.Hour))
		if e.Status.FailedEvictionCounter != 1 {
			t.Errorf("%d failed evictions are counted, want one", e.Status.FailedEvictionCounter)
		}
	}
	written := len(s.api.Writes())
	for minute := range 30 {
		s.change(locked, lockedBudget(2, time.Hour+time.Duration(minute)*time.Minute))
		s.pass(time.Minute)
	}
	if more := s.api.Writes()[written:]; len(more) > 0 {
		t.Errorf("writes for a lock that is renewed: %v", more)
	}

	s.change(lockedBudget(2, 2*time.Hour), webBudget(2))
	for _, pod := range pods {
		if s.podExists(pod) {
			t.Errorf("%s should be evicted at once", pod.Name)
		}
	}
}

// The reason why the pod stays is another one when its budget is free.
func TestAnUnlockedBudgetMayStillRefuse(t *testing.T) {
	t.Parallel()
	pod := webPod(0)
	s := newStage(t, lockedBudget(0, 10*time.Minute), pod, asked(pod))
	s.answers[pod.Name] = overBudget(exhausted)
	s.calm()
	s.pass(10*time.Minute - time.Second)
	expectRefusal(t, s.evacuation(pod).Status, v1alpha1.BlockerPDBLocked, lockedOut(10*time.Minute))
	if s.refused[pod.Name] != 0 {
		t.Errorf("the API server was asked %d times under a lock", s.refused[pod.Name])
	}
	s.pass(2 * time.Second)
	expectRefusal(t, s.evacuation(pod).Status, v1alpha1.BlockerPDBExhausted, exhausted)
	delete(s.answers, pod.Name)
	s.budgetEvent(webBudget(0), webBudget(1))
	s.calm()
	if s.podExists(pod) {
		t.Error("the pod should be evicted when the budget opens")
	}
}

// TestAKilledControllerHonoursLocks kills the controller after each of its writes
// in turn: the next one honours the lock, and its end.
func TestAKilledControllerHonoursLocks(t *testing.T) {
	t.Parallel()
	for killAfter := 0; ; killAfter++ {
		pod := webPod(0)
		s := newStage(t, lockedBudget(1, time.Hour), pod, asked(pod))
		s.api.KillAfter(killAfter)
		_ = s.settle() // A killed controller fails; what matters is how it ends.
		s.clock.Step(eviction.ReportAfter)
		s.queue = append(s.queue, client.ObjectKeyFromObject(asked(pod)))
		_ = s.settle()
		survived := !s.api.Killed()
		s.restart()
		s.calm()
		s.pass(30 * time.Minute)
		if !s.podExists(pod) {
			t.Fatalf("killed after write %d: a pod is evicted under a lock", killAfter)
		}
		expectRefusal(t, s.evacuation(pod).Status, v1alpha1.BlockerPDBLocked, lockedOut(time.Hour))
		s.pass(30 * time.Minute)
		if s.podExists(pod) || s.evacuation(pod) != nil {
			t.Fatalf("killed after write %d: the pod or its evacuation is left after the lock", killAfter)
		}
		if survived {
			return
		}
	}
}

// What cannot be read may be locked.
func TestAPodStaysWhileItsBudgetsCannotBeRead(t *testing.T) {
	t.Parallel()
	pod := webPod(0)
	s := newStage(t, lockedBudget(1, time.Minute), pod, asked(pod))
	s.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "list PodDisruptionBudget") {
			return fmt.Errorf("the cache is not filled")
		}
		return nil
	}
	failures := s.settle()
	if len(failures) != 1 || !strings.Contains(failures[0].Error(), "list pod disruption budgets: the cache is not filled") {
		t.Errorf("failures %v, want that the budgets cannot be read", failures)
	}
	if !s.podExists(pod) {
		t.Error("a pod is evicted though nobody knows whether its budget is locked")
	}
}
