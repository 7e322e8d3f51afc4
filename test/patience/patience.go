// Package patience waits for states in tests. No test fails because a machine is slow: a wait
// gives up only after a bound that no machine needs, and returns as soon as the state is there.
package patience

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// Bound is how long a test waits for a state before it fails.
	Bound = 5 * time.Minute
	// AfterFailure replaces Bound in a process in which a wait has run out. The states that
	// follow are often missing for the same reason, and nobody wants to wait for all of them.
	AfterFailure = time.Minute
)

// A state is probed this often at first, and ever less often while it is long in coming: probes
// of tests that run side by side would be a good part of what the API server does.
const (
	probeEvery  = 50 * time.Millisecond
	probeAtMost = 250 * time.Millisecond
)

// ranOut reports whether a wait of this process has run out.
var ranOut atomic.Bool

func bound() time.Duration {
	if ranOut.Load() {
		return AfterFailure
	}
	return Bound
}

// Context returns a context that ends after the bound. It outlives the test's own context,
// because cleanups wait too.
func Context(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), bound())
}

// Eventually waits until probe reports that the state is reached. probe returns a description
// of what it saw, which the failure shows.
func Eventually(t testing.TB, what string, probe func(context.Context) (saw string, ok bool)) {
	t.Helper()
	EventuallyShown(t, what, func(ctx context.Context) (func() string, bool) {
		saw, ok := probe(ctx)
		return func() string { return saw }, ok
	})
}

// EventuallyShown is Eventually for a description that is expensive to make: it is made only
// for the failure.
func EventuallyShown(t testing.TB, what string, probe func(context.Context) (saw func() string, ok bool)) {
	t.Helper()
	ctx, cancel := Context(t)
	defer cancel()
	last, began := func() string { return "nothing, the first probe did not end" }, time.Now()
	for {
		saw, ok := probe(ctx)
		if ok {
			return
		}
		// A probe that was cut off saw less than the one before it.
		if ctx.Err() == nil {
			last = saw
		}
		select {
		case <-ctx.Done():
			ranOut.Store(true)
			t.Fatalf("waited %s for %s; last seen:\n%s", time.Since(began).Round(time.Second), what, shorten(last()))
		case <-time.After(min(max(probeEvery, time.Since(began)/20), probeAtMost)):
		}
	}
}

// A failure shows this many lines, and characters of each, of what was seen.
const (
	most   = 6
	widest = 300
)

func shorten(seen string) string {
	lines := strings.Split(strings.TrimSpace(seen), "\n")
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more lines", more))
	}
	for i, line := range lines {
		if runes := []rune(line); len(runes) > widest {
			lines[i] = string(runes[:widest]) + "…"
		}
	}
	return strings.Join(lines, "\n")
}

// Receive waits for a value of a channel, or for its end, of which it returns the zero value.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	ctx, cancel := Context(t)
	defer cancel()
	select {
	case value := <-from:
		return value
	case <-ctx.Done():
		ranOut.Store(true)
		t.Fatalf("waited for %s, which did not come", what)
		panic("unreachable")
	}
}
