package evacuation_test

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// Ebbtide was away for longer than an evacuator may be silent, and those of its own with it.
// Otherwise a pod would be evicted that they are about to replace first.
func TestAnEvacuatorOfOursMayReportAfterTheManagerWasAway(t *testing.T) {
	t.Parallel()
	fresh := func(s *evacuation.Snapshot) { s.Fresh = evacuation.Lenience }
	for name, test := range map[string]struct {
		snapshot evacuation.Snapshot
		state    evacuation.State
		again    time.Duration
	}{
		"one of ours":                            {of(barePod(), active(v1alpha1.DeploymentEvacuatorClass, at(-time.Hour)), fresh), evacuation.StateEvacuating, evacuation.Lenience},
		"one of ours that still has time":        {of(barePod(), active(v1alpha1.DeploymentEvacuatorClass, at(-time.Minute)), fresh), evacuation.StateEvacuating, 29 * time.Minute},
		"one of ours, and the manager was there": {of(barePod(), active(v1alpha1.DeploymentEvacuatorClass, at(-time.Hour))), evacuation.StateEvicting, 0},
		"one of ours that has completed":         {of(barePod(), active(v1alpha1.DeploymentEvacuatorClass, at(-time.Hour)), completed, fresh), evacuation.StateEvicting, 0},
		"another one":                            {of(barePod(), active("mover.example.com", at(-time.Hour)), fresh), evacuation.StateEvicting, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := evacuation.Decide(test.snapshot)
			if d.State != test.state || d.RequeueAfter != test.again || d.Evict != (test.state == evacuation.StateEvicting) {
				t.Errorf("%s, again after %s, evicted: %t (%s); want %s, %s", d.State, d.RequeueAfter, d.Evict, d.Message, test.state, test.again)
			}
		})
	}
}
