package surge_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

// Who wants a pod replaced and nothing else learns from a condition that it is not.
func TestPodThatIsNotReplacedIsReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		s         *scene
		notSurged bool
	}{
		"given up": {
			web(1).evacuated(0).detached(0, 10*time.Minute).newcomer(false), true,
		},
		"never begun":  {web(1).evacuated(0).with(func(s *scene) { s.Deployment.Spec.Paused = true }), true},
		"switched off": {web(1).evacuated(0).detached(0, time.Minute).with(func(s *scene) { s.Mode = surge.Off }), true},
		"replaced":     {web(1).evacuated(0).detached(0, time.Minute).newcomer(true), false},
	} {
		d := surge.Decide(test.s.Snapshot)
		status := d.Moves[0][0].Status
		if status == nil || !status.ActiveEvacuatorCompleted {
			t.Fatalf("%s: %+v does not end the turn", name, d.Moves[0][0])
		}
		told := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSurged)
		if (told != nil) != test.notSurged || told != nil && told.Reason != v1alpha1.ReasonNotSurged {
			t.Errorf("%s: %+v, want NotSurged: %t", name, told, test.notSurged)
		}
	}
	alone := surge.DecideAlone(now, web(1).evacuated(0).Evacuations[0]).Moves[0][0].Status
	if meta.FindStatusCondition(alone.Conditions, v1alpha1.ConditionSurged) == nil {
		t.Errorf("a pod of nobody: %+v", alone)
	}
}
