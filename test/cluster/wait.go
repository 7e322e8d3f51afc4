package cluster

import (
	"context"
	"testing"
	"time"
)

// A state is probed this often at first, and ever less often while it is long in coming: probes
// of tests that run side by side would be a good part of what the API server does.
const (
	probeEvery  = 50 * time.Millisecond
	probeAtMost = 250 * time.Millisecond
)

// Eventually waits until probe reports that the state it describes is reached.
// probe returns a description of what it saw, which is shown when the time is
// up, and whether that is what the test waits for. What a probe saw whose time ran out is
// not shown where one before it saw more.
func Eventually(t testing.TB, what string, within time.Duration, probe func(context.Context) (saw string, ok bool)) {
	t.Helper()
	EventuallyShown(t, what, within, func(ctx context.Context) (func() string, bool) {
		saw, ok := probe(ctx)
		return func() string { return saw }, ok
	})
}

// EventuallyShown is Eventually for what takes long to describe: that is called for only
// when the time is up.
func EventuallyShown(t testing.TB, what string, within time.Duration, probe func(context.Context) (saw func() string, ok bool)) {
	t.Helper()
	// The context of a test ends before its cleanups run, and those wait too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	last, began := func() string { return "nothing, the first probe did not end in time" }, time.Now()
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
			t.Fatalf("waited %s for %s; last seen: %s", within, what, last())
		case <-time.After(min(max(probeEvery, time.Since(began)/20), probeAtMost)):
		}
	}
}
