package evacuation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod under two budgets rests for longer and longer, until one of them is gone
// or selects other pods.
func TestAPodUnderTwoBudgetsIsWokenByEitherOfThem(t *testing.T) {
	t.Parallel()
	other := webBudget(1)
	other.Name = "other"
	narrow := other.DeepCopy()
	narrow.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	foreign := webBudget(1)
	foreign.Namespace = "elsewhere"
	for name, tc := range map[string]struct {
		happens func(*stage)
		evicted bool
	}{
		"one is deleted":                      {func(s *stage) { s.budgetDeleted(other) }, true},
		"one selects other pods":              {func(s *stage) { s.budgetEvent(other, narrow) }, true},
		"one moves":                           {func(s *stage) { s.budgetEvent(other, other) }, false},
		"one of another namespace is deleted": {func(s *stage) { s.budgetDeleted(foreign) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := webPod(0)
			s := newStage(t, webBudget(1), other.DeepCopy(), foreign.DeepCopy(), pod, asked(pod))
			s.answers[pod.Name] = answered(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
			s.calm()
			s.pass(time.Hour)
			delete(s.answers, pod.Name)
			tc.happens(s)
			s.calm()
			if s.podExists(pod) == tc.evicted {
				t.Errorf("evicted at once: %v, want %v", !s.podExists(pod), tc.evicted)
			}
		})
	}
}
