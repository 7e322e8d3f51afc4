package evacuation_test

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

func skewed(s *evacuation.Snapshot) { s.ClockSkewed = true }

// While the clock is skewed no evacuator loses its turn, and no request is withdrawn,
// because of the time. Everything else goes on.
func TestSkewedClockEndsNoTurn(t *testing.T) {
	t.Parallel()
	mute := active("mover.example.com", at(-time.Hour))
	for name, test := range map[string]struct {
		snapshot       evacuation.Snapshot
		state          evacuation.State
		writes, evicts bool
	}{
		"an evacuator is silent for too long":               {snapshot: of(webPod(), mute, skewed), state: evacuation.StateEvacuating},
		"its report comes from the future":                  {snapshot: of(webPod(), active("mover.example.com", at(time.Hour)), skewed), state: evacuation.StateEvacuating},
		"it has done its part":                              {snapshot: of(webPod(), mute, completed, skewed), state: evacuation.StateEvacuating, writes: true},
		"those who call have stopped":                       {snapshot: of(barePod(), called(-time.Hour), skewed), state: evacuation.StateEvicting, evicts: true},
		"nobody asks any more, and nobody forbids anything": {snapshot: of(webPod(), mute, finalizers(), skewed), state: evacuation.StateCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := evacuation.Decide(test.snapshot)
			if d.State != test.state || (d.Status != nil) != test.writes || d.Evict != test.evicts || d.RequeueAfter < 0 {
				t.Errorf("state %s, writes %v, evicts %v, again in %s; want %s, %v, %v", d.State, d.Status != nil, d.Evict, d.RequeueAfter, test.state, test.writes, test.evicts)
			}
		})
	}
}
