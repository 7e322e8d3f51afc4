package evacuation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A manager that was away, and its surges with it, leaves the pod to them when it is back.
func TestAManagerThatComesBackEvictsNoPodThatItSurges(t *testing.T) {
	t.Parallel()
	pod := webPod(0, v1alpha1.DeploymentEvacuatorClass)
	s := newStage(t, pod, asked(pod))
	s.calm()
	s.clock.Step(time.Hour)
	s.restart()
	s.calm()
	if e := s.evacuation(pod); !s.podExists(pod) || e.Status.ActiveEvacuatorClass != v1alpha1.DeploymentEvacuatorClass {
		t.Fatalf("as the manager comes back the pod is there: %t, and the evacuation says %+v", s.podExists(pod), e)
	}
	s.update(pod, func(e *v1alpha1.Evacuation) {
		e.Status.EvacuationProgressTimestamp = &metav1.Time{Time: s.clock.Now()}
	})
	s.pass(29 * time.Minute)
	if !s.podExists(pod) {
		t.Fatal("the pod is evicted while it is surged")
	}
	s.pass(2 * time.Minute)
	if s.podExists(pod) {
		t.Error("the pod stays though its evacuator is silent")
	}
}

func TestAnEvacuatorThatComesBackPutsOffTheEviction(t *testing.T) {
	t.Parallel()
	pod := webPod(0, "mover.example.com")
	s := newStage(t, webBudget(0), pod, asked(pod))
	s.answers[pod.Name] = overBudget(exhausted)
	s.calm()
	s.pass(31 * time.Minute)
	if s.refused[pod.Name] == 0 {
		t.Fatal("the eviction should have been tried")
	}
	s.update(pod, func(e *v1alpha1.Evacuation) {
		e.Status.EvacuationProgressTimestamp = &metav1.Time{Time: s.clock.Now()}
	})
	delete(s.answers, pod.Name)
	s.budgetEvent(webBudget(0), webBudget(1))
	s.calm()
	s.pass(29 * time.Minute)
	e := s.evacuation(pod)
	if !s.podExists(pod) || meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionEvictionRefused) {
		t.Errorf("the eviction should be put off: %+v", e.Status)
	}
	s.expectEvents("EvacuatorActivated", "EvacuatorReturned")
}

func (s *stage) expectEvents(want ...string) {
	s.t.Helper()
	var got []string
	for _, told := range s.api.Events() {
		reason, _, _ := strings.Cut(told, " ")
		got = append(got, reason)
	}
	if !slices.Equal(want, got) {
		s.t.Errorf("events %v, want %v", got, want)
	}
}

// TestAKilledControllerWithdraws kills the controller after each write by which it
// takes back the request of somebody who has stopped calling.
func TestAKilledControllerWithdraws(t *testing.T) {
	t.Parallel()
	for killAfter := range 4 {
		pod := webPod(0, "mover.example.com")
		e := asked(pod)
		e.Finalizers = []string{v1alpha1.EvictionInstigator}
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, v1alpha1.EvictionAttemptAnnotation, dawn.Add(-time.Hour).Format(time.RFC3339))
		s := newStage(t, pod, e)
		s.api.KillAfter(killAfter)
		_ = s.settle() // A killed controller fails; what matters is how it ends.
		s.restart()
		s.calm()
		if s.evacuation(pod) != nil || !s.podExists(pod) {
			t.Errorf("killed after write %d: the evacuation should be gone and the pod should stay", killAfter)
		}
	}
}
