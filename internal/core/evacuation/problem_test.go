package evacuation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/difference"
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

func TestOmittedRegistrationsAreReportedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		snapshot evacuation.Snapshot
		want     []string
	}{
		"with the first turn": {
			of(badly(webPod()), withProblems),
			[]string{"EvacuatorActivated", "EvacuatorsIgnored"},
		},
		"with the eviction, if no evacuator is left": {of(badly(barePod()), withProblems), []string{"EvacuatorsIgnored"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := evacuation.Decide(tc.snapshot)
			keepMessages(t, d)
			var got []string
			for _, e := range d.Events {
				got = append(got, e.Reason)
			}
			difference.None(t, "events", tc.want, got)
		})
	}
}

func TestUnevictablePodIsReportedOnce(t *testing.T) {
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
