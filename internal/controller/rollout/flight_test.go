package rollout

import (
	"testing"

	core "ebbtide.dev/ebbtide/internal/core/rollout"
)

// The nodes that a rollout is about to record count as started for the other rollouts. What is decided
// of it meanwhile is not written, even if its writes have just ended.
func TestRolloutUnderWayIsSeenAsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"))
	var between func()
	m := w.manager(func(s *core.Snapshot) *core.Decision {
		d := starting(s)
		if between != nil {
			between()
			d.Rollouts[0].Status.Summary = "changed"
		}
		return d
	})
	release := m.hang("status of kernel")
	m.decideOnce()
	between = func() {
		release()
		m.flights.wait()
	}
	m.decideOnce()
	if seen := m.last(); len(seen.Rollouts[0].Status.Working) != 1 || !seen.Unknown["kernel"] {
		t.Errorf("it sees %v, unknown %v", seen.Rollouts[0].Status.Working, seen.Unknown)
	}
	m.flights.wait()
	if writes := w.api.Writes(); len(writes) != 2 {
		t.Errorf("it writes %q", writes)
	}
}

// When the writes of a rollout have ended, another decision follows: it may have been passed over.
func TestEndOfWritesWakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"))
	m := w.manager(starting)
	woken := make(chan int, 1)
	wake := func() { woken <- len(m.flights.under()) }
	m.wake.Store(&wake)
	m.pass()
	if under := <-woken; under != 0 {
		t.Errorf("%d rollouts are still under way", under)
	}
}
