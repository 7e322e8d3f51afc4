package nodemaintenance

import (
	"strconv"
	"testing"
	"time"
)

func TestPaceOfStatusWrites(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		maintenances, size int
		progress, urgent   time.Duration
	}{
		"one":                          {1, 0, time.Second, 0},
		"a few wait no longer":         {10, 0, time.Second, 0},
		"many share ten in a second":   {99, 0, 9900 * time.Millisecond, 0},
		"a huge crowd has a bound":     {5000, 0, longestInterval, 0},
		"a large status waits longer":  {1, 4 * statusBytes, 4 * time.Second, time.Second},
		"the largest of many are last": {99, 12 * statusBytes, 12 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPace()
			for i := range c.maintenances {
				p.wrote(strconv.Itoa(i), start, c.size)
			}
			if progress, urgent := p.left("0", start, false), p.left("0", start, true); progress != c.progress || urgent != c.urgent {
				t.Errorf("progress waits %s and conditions %s, want %s and %s", progress, urgent, c.progress, c.urgent)
			}
			if left := p.left("new", start, false); left != 0 {
				t.Errorf("a maintenance without a status waits %s", left)
			}
			// The others have ended long ago.
			later := start.Add(time.Minute)
			p.wrote("0", later, 100)
			if left := p.left("0", later, false); left != statusInterval {
				t.Errorf("a minute after the crowd progress waits %s, want %s", left, statusInterval)
			}
		})
	}
}
