package evacuation

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An evacuator is silent for hours by a skewed clock, and keeps its turn. When the clock is
// trusted again, the next one takes over.
func TestSkewedClockEndsNoTurn(t *testing.T) {
	t.Parallel()
	pod := webPod(0, "mover.example.com", "backup.example.com")
	s := newStage(t, pod, asked(pod))
	s.calm()
	for _, step := range []struct {
		skewed bool
		active string
	}{{true, "mover.example.com"}, {false, "backup.example.com"}} {
		s.skewed = step.skewed
		s.pass(time.Hour)
		s.queue = append(s.queue, client.ObjectKeyFromObject(s.evacuation(pod)))
		s.calm()
		if active := s.evacuation(pod).Status.ActiveEvacuatorClass; active != step.active {
			t.Fatalf("active is %s, want %s while the clock is skewed: %t", active, step.active, step.skewed)
		}
	}
}
