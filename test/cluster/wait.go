package cluster

import (
	"context"
	"testing"
	"time"
)

// Eventually waits until probe reports that the state it describes is reached.
// probe returns a description of what it saw, which is shown when the time is
// up, and whether that is what the test waits for. What a probe saw whose time ran out is
// not shown where one before it saw more.
func Eventually(t testing.TB, what string, within time.Duration, probe func(context.Context) (saw string, ok bool)) {
	t.Helper()
	// The context of a test ends before its cleanups run, and those wait too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := "nothing, the first probe did not end in time"
	for {
		saw, ok := probe(ctx)
		if ok {
			return
		}
		if ctx.Err() == nil {
			last = saw
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for %s; last seen: %s", within, what, last)
		case <-tick.C:
		}
	}
}
