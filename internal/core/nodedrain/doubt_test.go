package nodedrain

import (
	"testing"
	"time"
)

// A pod of a node that nobody hears of is waited for while the clock is not believed,
// which alone says that it has had its time.
func TestAPodIsNotGivenUpByADoubtfulClock(t *testing.T) {
	t.Parallel()
	const doubt = "The manager's clock is wrong: set it."
	for name, test := range map[string]struct {
		deleted time.Duration
		held    string
	}{
		"its time seems to be over": {-time.Hour, doubt},
		"it has time":               {time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := unreachable(snapshot(terminating(test.deleted, pod("a"))))
			s.Doubt = doubt
			d := Decide(s)
			if d.Done || len(d.Terminating) != 1 || d.Held != test.held {
				t.Errorf("done %v, waits for %d pods because of %q, want it to wait because of %q", d.Done, len(d.Terminating), d.Held, test.held)
			}
		})
	}
}
