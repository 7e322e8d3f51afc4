package surge_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

const (
	marks    = `pod-deletion-cost=-1 surge-replacement={"deployment":{"name":"web","uid":"uid-web"},"for":"uid-0"}`
	unwanted = " +PodGivenBack (cancelled)"
)

// returned is the state after the label was given back.
func (s *scene) returned(number int) *scene {
	s.Pods[number].Labels[hashLabel] = "abc"
	return s
}

// marked is the state after a pod was chosen to make room for web-0.
func (s *scene) marked(number int) *scene {
	s.Pods[number].Annotations = map[string]string{
		corev1.PodDeletionCost:              "-1",
		v1alpha1.SurgeReplacementAnnotation: `{"deployment":{"name":"web","uid":"uid-web"},"for":"uid-0","cost":"7"}`,
	}
	return s
}

func TestADetachedPodGoesBack(t *testing.T) {
	t.Parallel()
	check(t, map[string]story{
		"when nobody asks any more, and the newcomer makes room": {
			web(1).detached(0, time.Minute).newcomer(true),
			[]string{"web-1: " + marks, "web-0: pod-template-hash=abc" + unwanted},
		},
		"when the last instigator let go while it was our turn": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(func(s *scene) { s.Evacuations[0].Finalizers = nil }),
			[]string{"web-1: " + marks, "web-0: pod-template-hash=abc" + unwanted},
		},
		"not yet when it may be evicted at this moment": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(func(s *scene) {
				s.Evacuations[0].Finalizers, s.Evacuations[0].Status.ActiveEvacuatorCompleted = nil, true
			}), nil,
		},
		"when only others hold the evacuation that it could have been evicted for": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(func(s *scene) {
				e := s.Evacuations[0]
				e.Finalizers, e.Status.ActiveEvacuatorCompleted = []string{"example.com/holds"}, true
				e.DeletionTimestamp = new(metav1.Now())
			}),
			[]string{"web-1: " + marks, "web-0: pod-template-hash=abc" + unwanted},
		},
		"a newcomer is marked once": {
			web(1).detached(0, time.Minute).newcomer(true).marked(1),
			[]string{"web-0: pod-template-hash=abc" + unwanted},
		},
		"the mark is below all others": {
			web(2).detached(0, time.Minute).newcomer(true).with(func(s *scene) {
				s.Pods[1].Annotations = map[string]string{corev1.PodDeletionCost: "-5"}
			}),
			[]string{
				`web-2: pod-deletion-cost=-6 surge-replacement={"deployment":{"name":"web","uid":"uid-web"},"for":"uid-0"}`,
				"web-0: pod-template-hash=abc" + unwanted,
			},
		},
		"a newcomer that leaves its own node does not make room": {
			web(2).detached(0, time.Minute).newcomer(true).evacuated(2).with(func(s *scene) { s.Evacuations[0].Status.ActiveEvacuatorClass = "mover.example.com" }),
			[]string{"web-1: " + marks, "web-0: pod-template-hash=abc" + unwanted},
		},
		"nobody makes room where there is some": {
			web(2).detached(0, time.Minute),
			[]string{"web-0: pod-template-hash=abc" + unwanted},
		},
		"when its ReplicaSet wants no pods, to be removed by it": {
			web(1).detached(0, time.Minute).with(func(s *scene) { s.ReplicaSets[0].Spec.Replicas = new(int32(0)) }),
			[]string{"web-0: pod-template-hash=abc" + unwanted},
		},
		"and keeps its record until its ReplicaSet has taken it": {
			web(1).detached(0, time.Minute).returned(0), nil,
		},
		"then the record goes, whoever brought it back": {
			web(1).detached(0, time.Minute).returned(0).with(func(s *scene) { s.Pods[0].OwnerReferences = owner(s.ReplicaSets[0]) }),
			[]string{"web-0: surge-"},
		},
	})
}

// To give back a pod that may be evicted, and have the one removed that is ready
// in its place, could cost both.
func TestAPodStaysOutWhileOthersAreReadyInItsPlace(t *testing.T) {
	t.Parallel()
	unsettled := func(s *scene) { s.Deployment.Spec.MinReadySeconds = 600 }
	check(t, map[string]story{
		"when surging is switched off": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(unsettled).with(func(s *scene) { s.Mode = surge.Off }),
			[]string{"complete +NotSurged (ineligible)"},
		},
		"when the time is up": {
			web(1).evacuated(0).detached(0, 10*time.Minute).newcomer(true).with(unsettled),
			[]string{
				"complete +NotSurged (gaveup)",
				"again in 9m0s",
			},
		},
		"when somebody found that": {
			web(1).evacuated(0).detached(0, 10*time.Minute).newcomer(true).with(unsettled).with(func(s *scene) {
				s.Evacuations[0].Status.ActiveEvacuatorCompleted = true
			}),
			[]string{"again in 9m0s"},
		},
	})
}

func TestNoOrphanIsLeft(t *testing.T) {
	t.Parallel()
	setGone := func(s *scene) { s.Deployment, s.ReplicaSets = nil, nil }
	check(t, map[string]story{
		"nothing is left that could take it back": {
			web(1).detached(0, time.Minute).with(setGone),
			[]string{"delete web-0 +DetachedPodDeleted (cancelled)"},
		},
		"the ReplicaSet goes before it takes it back": {
			web(1).detached(0, time.Minute).returned(0).with(func(s *scene) { s.ReplicaSets[0].DeletionTimestamp = new(ago(0)) }),
			[]string{"delete web-0 +DetachedPodDeleted (cancelled)"},
		},
		"another ReplicaSet of that name": {
			web(1).detached(0, time.Minute).with(func(s *scene) {
				s.ReplicaSets = []*appsv1.ReplicaSet{s.ReplicaSets[0].DeepCopy()}
				s.ReplicaSets[0].UID = "uid-again"
			}),
			[]string{"delete web-0 +DetachedPodDeleted (cancelled)"},
		},
		"a ReplicaSet without its Deployment takes it back": {
			web(1).detached(0, time.Minute).with(func(s *scene) { s.Deployment = nil }),
			[]string{"web-0: pod-template-hash=abc" + unwanted},
		},
		"it is evicted if it is still to leave": {
			web(1).evacuated(0).detached(0, time.Minute).with(setGone),
			[]string{"complete +NotSurged (ineligible)"},
		},
		"a ReplicaSet without its Deployment still replaces it": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(false).with(func(s *scene) { s.Deployment = nil }),
			[]string{"again in 5s"},
		},
		"as far as it wants pods": {
			web(1).evacuated(0).detached(0, time.Minute).with(func(s *scene) { s.Deployment = nil; s.ReplicaSets[0].Spec.Replicas = new(int32(0)) }),
			[]string{"complete (completed)"},
		},
		"a pod that has failed": {
			web(1).detached(0, time.Minute).with(func(s *scene) { s.Pods[0].Status.Phase = corev1.PodFailed }),
			[]string{"delete web-0 +DetachedPodDeleted"},
		},
		"a copy of a detached pod is nobody we know": {
			web(1).detached(0, time.Minute).with(func(s *scene) { s.Pods[0].UID = "uid-copy" }), nil,
		},
		"a pod that leaves": {
			web(1).detached(0, time.Minute).with(func(s *scene) { s.Pods[0].DeletionTimestamp = new(ago(0)) }), nil,
		},
	})
}

func TestAMarkGoesWithItsPurpose(t *testing.T) {
	t.Parallel()
	const goes = "web-1: pod-deletion-cost=7 surge-replacement-"
	check(t, map[string]story{
		"another pod made room":                     {web(2).marked(1), []string{goes}},
		"the pod that it was to make room for went": {web(2).marked(1).with(func(s *scene) { s.Pods = s.Pods[1:]; s.ReplicaSets[0].Spec.Replicas = new(int32(1)) }), []string{goes}},
		"somebody still has to go":                  {web(1).newcomer(true).marked(1), nil},
		"the pod is not back yet":                   {web(2).marked(1).detached(0, time.Minute).returned(0), nil},
	})
}
