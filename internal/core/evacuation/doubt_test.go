package evacuation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

const wrongClock = "The manager's clock is wrong: set it."

func doubted(s *evacuation.Snapshot) { s.Doubt = wrongClock }

// toldOfClock is what the status says of the clock before a decision.
func toldOfClock(message string) scene {
	return func(s *evacuation.Snapshot) {
		meta.SetStatusCondition(&s.Evacuation.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionClockSkewed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClockSkewed, Message: message,
		})
	}
}

// While the clock is not believed nobody loses a turn, and no request is withdrawn,
// because of the time. What is held back so is told; everything else goes on.
func TestADoubtfulClock(t *testing.T) {
	t.Parallel()
	const (
		silent = "The turn goes on, though evacuator mover.example.com has reported no progress since 2026-03-01T07:00:00Z. " + wrongClock
		stands = "The request of those who call the eviction API stands. " + wrongClock
	)
	mute := active("mover.example.com", at(-time.Hour))
	for name, test := range map[string]struct {
		snapshot evacuation.Snapshot
		state    evacuation.State
		// says is what the condition says afterwards, writes whether it is written.
		says           string
		writes, evicts bool
	}{
		"an evacuator seems to be silent for too long":      {snapshot: of(webPod(), mute, doubted), state: evacuation.StateEvacuating, says: silent, writes: true},
		"... which was told before":                         {snapshot: of(webPod(), mute, doubted, toldOfClock(silent)), state: evacuation.StateEvacuating, says: silent},
		"... and reports now":                               {snapshot: of(webPod(), active("mover.example.com", at(0)), doubted, toldOfClock(silent)), state: evacuation.StateEvacuating, writes: true},
		"... and the clock is believed again":               {snapshot: of(webPod(), mute, toldOfClock(silent)), state: evacuation.StateEvacuating, writes: true},
		"... and has forbidden to cancel":                   {snapshot: of(webPod(), mute, forbidden, finalizers(), doubted), state: evacuation.StateForbidden, says: silent, writes: true},
		"its report seems to come from the future":          {snapshot: of(webPod(), active("mover.example.com", at(time.Hour)), doubted), state: evacuation.StateEvacuating},
		"it has done its part":                              {snapshot: of(webPod(), mute, completed, doubted), state: evacuation.StateEvacuating, writes: true},
		"those who call seem to have stopped":               {snapshot: of(barePod(), called(-time.Hour), doubted), state: evacuation.StateEvicting, says: stands, writes: true, evicts: true},
		"nobody moves the pod: it is evicted as ever":       {snapshot: of(barePod(), doubted), state: evacuation.StateEvicting, evicts: true},
		"the pod is gone":                                   {snapshot: of(webPod(), mute, podGone, doubted, toldOfClock(silent)), state: evacuation.StateDone, says: silent},
		"nobody asks any more, and nobody forbids anything": {snapshot: of(webPod(), mute, finalizers(), doubted), state: evacuation.StateCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := evacuation.Decide(test.snapshot)
			status := test.snapshot.Evacuation.Status
			if d.Status != nil {
				status = *d.Status
			}
			said := ""
			if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionClockSkewed); c != nil {
				said = c.Message
			}
			if diff := cmp.Diff(test.says, said); diff != "" {
				t.Errorf("it says (-want +got):\n%s", diff)
			}
			if d.State != test.state || (d.Status != nil) != test.writes || d.Evict != test.evicts || d.RequeueAfter < 0 {
				t.Errorf("state %s, writes %v, evicts %v, again in %s; want %s, %v, %v", d.State, d.Status != nil, d.Evict, d.RequeueAfter, test.state, test.writes, test.evicts)
			}
		})
	}
}
