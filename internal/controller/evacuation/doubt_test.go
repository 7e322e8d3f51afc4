package evacuation

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// An evacuator is silent for hours by a clock that is not believed. It keeps its turn,
// which is told once. When the clock is believed, the next one takes over.
func TestNobodyLosesATurnByAClockThatIsNotBelieved(t *testing.T) {
	t.Parallel()
	pod := webPod(0, "mover.example.com", "backup.example.com")
	s := newStage(t, pod, asked(pod))
	s.calm()
	s.doubt = "The manager's clock is wrong."
	for range 5 {
		s.pass(time.Hour)
		s.queue = append(s.queue, names(s)...)
		s.calm()
	}
	e := s.evacuation(pod)
	told := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionClockSkewed)
	if e.Status.ActiveEvacuatorClass != "mover.example.com" || told == nil || !strings.HasSuffix(told.Message, s.doubt) {
		t.Fatalf("active is %s, told %+v; want mover.example.com, and why", e.Status.ActiveEvacuatorClass, told)
	}

	s.doubt = ""
	s.queue = append(s.queue, names(s)...)
	s.calm()
	e = s.evacuation(pod)
	if told := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionClockSkewed); e.Status.ActiveEvacuatorClass != "backup.example.com" || told != nil {
		t.Errorf("active is %s, told %+v; want backup.example.com and nothing of the clock", e.Status.ActiveEvacuatorClass, told)
	}
}

// names are the evacuations that are looked at again when the clock is believed.
func names(s *stage) []types.NamespacedName {
	var all []types.NamespacedName
	for _, request := range s.reconciler.held(s.t.Context()) {
		all = append(all, request.NamespacedName)
	}
	return all
}
