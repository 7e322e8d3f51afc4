package evacuation

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
