package evacuation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/eviction"
)

// webPod is a pod of the application web; a lower number is older.
func webPod(number int, annotations ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("web-%d", number), UID: types.UID(fmt.Sprintf("uid-%d", number)),
		CreationTimestamp: metav1.Time{Time: dawn.Add(time.Duration(number) * time.Second)},
		Labels:            map[string]string{"app": "web"},
	}}
	for i, class := range annotations {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.EvacuatorAnnotationPrefix+class, fmt.Sprint(100-i))
	}
	return p
}

func asked(pod *corev1.Pod) *v1alpha1.Evacuation {
	evacuators, _ := podclass.Evacuators(pod)
	return core.New(pod, v1alpha1.NodeMaintenanceInstigator, evacuators)
}

func webBudget(allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed},
	}
}

func answered(code int32, message string, causes ...metav1.StatusCause) metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: code, Message: message, Details: &metav1.StatusDetails{Causes: causes},
	}
}

func overBudget(message string) metav1.Status {
	return answered(429, "Cannot evict pod as it would violate the pod's disruption budget.",
		metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: message})
}

const (
	exhausted = "The disruption budget web needs 3 healthy pods and has 3 currently"
	denial    = `admission webhook "guard.example.com" denied the request: not on a Friday`
)

func TestRefusalsAreReportedAsTheServerSentThem(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer  metav1.Status
		after   time.Duration
		reason  v1alpha1.BlockerType
		message string
	}{
		"budget":                       {overBudget(exhausted), eviction.ReportAfter, v1alpha1.BlockerPDBExhausted, exhausted},
		"throttling that does not end": {answered(429, "slow down"), 10 * time.Second, v1alpha1.BlockerEvictionError, "slow down"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := webPod(0)
			s := newStage(t, pod, asked(pod), webBudget(0))
			s.answers[pod.Name] = tc.answer
			s.calm()
			if e := s.evacuation(pod); e.Status.Message != "" {
				t.Errorf("a refusal that has not lasted is written: %s", e.Status.Message)
			}
			s.pass(tc.after)
			expectRefusal(t, s.evacuation(pod).Status, tc.reason, tc.message)
			delete(s.answers, pod.Name)
			s.pass(time.Minute)
			if s.podExists(pod) || s.evacuation(pod) != nil {
				t.Error("the pod and its evacuation should be gone when nothing refuses any more")
			}
		})
	}
}

func expectRefusal(t *testing.T, status v1alpha1.EvacuationStatus, reason v1alpha1.BlockerType, message string) {
	t.Helper()
	refused := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionEvictionRefused)
	message = strings.TrimSuffix(message, ".") + "; retried "
	if refused == nil || refused.Reason != string(reason) || !strings.HasPrefix(refused.Message, message) {
		t.Fatalf("condition = %+v, want %s: %s", refused, reason, message)
	}
	if want := "Eviction refused: " + refused.Message; status.Message != want {
		t.Errorf("message = %q, want %q", status.Message, want)
	}
	if status.FailedEvictionCounter == 0 {
		t.Error("no failed eviction is counted")
	}
}

func TestAPodThatVanishesMeanwhile(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]metav1.Status{
		"not found":   answered(404, `pods "web-0" not found`),
		"another UID": answered(409, "the UID in the precondition (uid-0) does not match the UID in record (uid-1)."),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := webPod(0)
			s := newStage(t, pod, asked(pod))
			s.answers[pod.Name] = answer
			s.calm()
			s.must(s.api.Delete(t.Context(), pod))
			s.podDeleted(pod)
			s.calm()
			s.pass(sweepDelay)
			if s.refused[pod.Name] != 1 || s.evacuation(pod) != nil {
				t.Errorf("asked %d times, evacuation %v; want one try and a clean end", s.refused[pod.Name], s.evacuation(pod))
			}
		})
	}
}

func TestOnlyABudgetThatMovedWakesItsPods(t *testing.T) {
	t.Parallel()
	open, wider, stale := webBudget(1), webBudget(0), webBudget(5)
	wider.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "front"}}
	stale.Generation = 2
	for name, tc := range map[string]struct {
		after *policyv1.PodDisruptionBudget
		tries int
	}{
		"it allows one":           {open, 2},
		"it still allows none":    {webBudget(0), 1},
		"its status is stale":     {stale, 1},
		"it protects other pods":  {wider, 2},
		"it is about another one": {&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: open.Spec, Status: open.Status}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := webPod(0)
			s := newStage(t, webBudget(0), pod, asked(pod))
			s.answers[pod.Name] = overBudget(exhausted)
			s.calm()
			before := webBudget(0)
			before.Name = tc.after.Name
			s.budgetEvent(before, tc.after)
			s.calm()
			if s.refused[pod.Name] != tc.tries {
				t.Errorf("tried %d times, want %d", s.refused[pod.Name], tc.tries)
			}
		})
	}
}

func TestReportsAreRare(t *testing.T) {
	t.Parallel()
	pod := webPod(0)
	s := newStage(t, webBudget(0), pod, asked(pod))
	s.answers[pod.Name] = overBudget(exhausted)
	s.calm()
	for range 200 {
		s.budgetEvent(webBudget(0), webBudget(1))
		s.calm()
		s.pass(time.Second)
	}
	if reports := len(s.api.Writes()) - s.refused[pod.Name]; reports != 1 {
		t.Errorf("%d status writes in 200 s for the same words, want 1", reports)
	}
	s.pass(core.CountInterval)
	e := s.evacuation(pod)
	if int(e.Status.FailedEvictionCounter) < 26 {
		t.Errorf("counter = %d, want all %d", e.Status.FailedEvictionCounter, s.refused[pod.Name])
	}
	s.answers[pod.Name] = overBudget("The disruption budget web needs 3 healthy pods and has 2 currently")
	s.budgetEvent(webBudget(0), webBudget(1))
	s.calm()
	s.pass(core.MessageInterval)
	if e := s.evacuation(pod); !strings.Contains(e.Status.Message, "has 2 currently") {
		t.Errorf("message = %q, want the new words", e.Status.Message)
	}
}

// TestAKilledControllerContinues kills the controller after each of its writes
// in turn; a new one that remembers nothing reaches the same end.
func TestAKilledControllerContinues(t *testing.T) {
	t.Parallel()
	for killAfter := 1; ; killAfter++ {
		moved, held := webPod(0, "mover.example.com"), webPod(1)
		unresolved := asked(moved)
		unresolved.Spec.Evacuators = nil
		s := newStage(t, webBudget(0), moved, held, unresolved, asked(held))
		s.answers[held.Name] = overBudget(exhausted)
		s.api.KillAfter(killAfter)
		play := func() {
			_ = s.settle() // A killed controller fails; what matters is how it ends.
			s.clock.Step(eviction.ReportAfter)
			s.queue = append(s.queue, client.ObjectKeyFromObject(asked(held)))
			_ = s.settle()
			s.clock.Step(time.Hour)
			delete(s.answers, held.Name)
			s.queue = append(s.queue, client.ObjectKeyFromObject(asked(moved)), client.ObjectKeyFromObject(asked(held)))
			_ = s.settle()
		}
		play()
		survived := !s.api.Killed()
		s.restart()
		s.calm()
		s.pass(2 * time.Hour)
		for _, pod := range []*corev1.Pod{moved, held} {
			if s.podExists(pod) || s.evacuation(pod) != nil {
				t.Fatalf("killed after write %d: %s or its evacuation is left", killAfter, pod.Name)
			}
		}
		if survived {
			if killAfter < 8 {
				t.Errorf("the story has only %d writes", killAfter-1)
			}
			return
		}
	}
}
