package evacuation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// badly is the pod with registrations that nobody understands besides.
func badly(pod *corev1.Pod) *corev1.Pod {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[v1alpha1.EvacuatorAnnotationPrefix+"late.example.com"] = "soon"
	pod.Annotations[v1alpha1.EvacuatorAnnotationPrefix+"high.example.com"] = "100001"
	return pod
}

func withProblems(s *evacuation.Snapshot) { _, s.Problems = podclass.Evacuators(s.Pod) }

func TestRegistrationsThatAreLeftOutAreToldOnce(t *testing.T) {
	const words = "Not every evacuator of pod web-0 is understood: " +
		`annotation evacuation.coordination.k8s.io/priority_high.example.com is ignored: priority "100001" must be an integer from 0 to 100000, as in "10000/controller"; ` +
		`annotation evacuation.coordination.k8s.io/priority_late.example.com is ignored: priority "soon" must be an integer from 0 to 100000, as in "10000/controller".`
	told := map[string]string{"EvacuatorsIgnored": words}
	for name, tc := range map[string]struct {
		snapshot evacuation.Snapshot
		want     map[string]string
	}{
		"with the first turn": {
			of(badly(webPod()), withProblems),
			map[string]string{"EvacuatorsIgnored": words, "EvacuatorActivated": "Evacuator mover.example.com is to move the pod."},
		},
		"with the eviction, if no evacuator is left": {of(badly(barePod()), withProblems), told},
		"not with later turns": {
			of(badly(webPod()), withProblems, active("mover.example.com", at(0)), completed),
			map[string]string{"EvacuatorReplaced": "Evacuator backup.example.com takes over: evacuator mover.example.com completed and the pod is still there."},
		},
		"not with an eviction after turns": {
			of(badly(webPod()), withProblems, active("backup.example.com", at(-time.Hour))),
			map[string]string{"PodEvicted": "Pod web-0 is evicted: evacuator backup.example.com has reported no progress since 2026-03-01T07:00:00Z."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, e := range evacuation.Decide(tc.snapshot).Events {
				got[e.Reason] = e.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnUnevictablePodIsToldOfOnce(t *testing.T) {
	mirror := barePod()
	podclass.MakeMirror(mirror, "node")
	s := of(badly(mirror), withProblems)
	s.Evacuators, s.Evacuation.Spec.Evacuators = nil, nil
	first := evacuation.Decide(s)
	s.Evacuation.Status = *first.Status
	if again := evacuation.Decide(s); len(first.Events) != 1 || len(again.Events) != 0 {
		t.Errorf("events %v, then %v; want one, once", first.Events, again.Events)
	}
}
