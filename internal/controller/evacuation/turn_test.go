package evacuation

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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

func TestEvacuatorsTakeTurnsByTheClock(t *testing.T) {
	t.Parallel()
	pod := webPod(0, "mover.example.com", "backup.example.com")
	bare := asked(pod)
	bare.Spec.Evacuators, bare.Labels, bare.Annotations = nil, nil, nil
	s := newStage(t, pod, bare)
	s.calm()
	if e := s.evacuation(pod); len(e.Spec.Evacuators) != 2 || e.Status.ActiveEvacuatorClass != "mover.example.com" {
		t.Fatalf("evacuators %v, active %q; want both resolved and the first active", e.Spec.Evacuators, e.Status.ActiveEvacuatorClass)
	}
	if e, want := s.evacuation(pod), asked(pod); !maps.Equal(e.Labels, want.Labels) || !maps.Equal(e.Annotations, want.Annotations) {
		t.Fatalf("labels %v, annotations %v; want %v, %v", e.Labels, e.Annotations, want.Labels, want.Annotations)
	}
	s.pass(20 * time.Minute)
	s.update(pod, func(e *v1alpha1.Evacuation) {
		e.Status.EvacuationProgressTimestamp = &metav1.Time{Time: s.clock.Now()}
	})
	s.calm()
	s.pass(29 * time.Minute)
	if e := s.evacuation(pod); e.Status.ActiveEvacuatorClass != "mover.example.com" {
		t.Fatalf("active = %s, want the one that reported 29 minutes ago", e.Status.ActiveEvacuatorClass)
	}
	s.pass(2 * time.Minute)
	e := s.evacuation(pod)
	if want := "Evacuator backup.example.com takes over: evacuator mover.example.com has reported no progress since 2026-03-01T08:20:00Z."; e.Status.Message != want {
		t.Fatalf("message = %q, want %q", e.Status.Message, want)
	}
	s.pass(28 * time.Minute)
	if !s.podExists(pod) {
		t.Fatal("the pod was evicted while an evacuator had its turn")
	}
	s.pass(2 * time.Minute)
	if s.podExists(pod) || s.evacuation(pod) != nil {
		t.Error("the pod should be evicted when the last evacuator is silent")
	}
	s.expectEvents("EvacuatorActivated", "EvacuatorReplaced", "PodEvicted")
}

// Whoever calls the eviction API asks for as long as the calls go on, and five minutes
// and a half beyond that.
func TestARequestOfTheEvictionAPIEnds(t *testing.T) {
	t.Parallel()
	alone, shared := webPod(0, "mover.example.com"), webPod(1, "mover.example.com")
	s := newStage(t, alone, shared, asked(alone), asked(shared))
	call := func(pod *corev1.Pod) {
		s.update(pod, func(e *v1alpha1.Evacuation) {
			metav1.SetMetaDataAnnotation(&e.ObjectMeta, v1alpha1.EvictionAttemptAnnotation, s.clock.Now().Format(time.RFC3339))
		})
	}
	s.update(alone, func(e *v1alpha1.Evacuation) { e.Finalizers = []string{v1alpha1.EvictionInstigator} })
	s.update(shared, func(e *v1alpha1.Evacuation) { e.Finalizers = append(e.Finalizers, v1alpha1.EvictionInstigator) })
	for range 4 {
		call(alone)
		call(shared)
		s.calm()
		s.pass(5 * time.Minute)
	}
	if s.evacuation(alone) == nil {
		t.Fatal("the evacuation should stand while somebody calls")
	}
	s.pass(29 * time.Second)
	if s.evacuation(alone) == nil {
		t.Fatal("the evacuation should stand five minutes and a half after the last call")
	}
	s.pass(time.Second)
	if s.evacuation(alone) != nil || !s.podExists(alone) {
		t.Error("the evacuation should be gone and the pod should stay")
	}
	e := s.evacuation(shared)
	if e == nil || !slices.Equal(e.Finalizers, []string{v1alpha1.NodeMaintenanceInstigator}) {
		t.Errorf("evacuation = %+v, want the maintenance to go on asking, alone", e)
	}
	s.expectEvents("EvacuatorActivated", "EvacuatorActivated", "EvictionWithdrawn", "EvictionWithdrawn")
}
