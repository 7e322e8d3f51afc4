package patience_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebbtide.dev/ebbtide/test/patience"
)

func TestAStateThatTakesMinutesIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		patience.Eventually(t, "a slow state", func(context.Context) (string, bool) {
			return "", time.Since(begin) > 4*time.Minute
		})
		if took := time.Since(begin); took > 4*time.Minute+time.Second {
			t.Errorf("returned after %s, want it soon after the state is there", took)
		}
	})
}

// A failure names the state and what was seen before the last probe was cut off. The waits
// after it are shorter.
func TestAStateThatNeverComesFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, bound := range []time.Duration{patience.Bound, patience.AfterFailure} {
			begin, failed := time.Now(), &failing{TB: t}
			failed.run(func() { patience.Eventually(failed, "a pod", node) })
			if took := time.Since(begin); took < bound || took > bound+time.Second {
				t.Errorf("gave up after %s, want %s", took, bound)
			}
			if !strings.Contains(failed.said, "a pod") || !strings.HasSuffix(failed.said, "last seen:\na node") {
				t.Errorf("the failure says %q", failed.said)
			}
		}
		silent := &failing{TB: t}
		silent.run(func() { patience.Receive(silent, "an answer", make(chan int)) })
		if !strings.Contains(silent.said, "an answer") {
			t.Errorf("the failure says %q", silent.said)
		}
	})
}

// node is a probe that sees a node until its time is up.
func node(ctx context.Context) (string, bool) {
	if ctx.Err() != nil {
		return "cut off", false
	}
	return "a node", false
}

// failing is a test that keeps what it fails with.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// run runs a function up to its Fatalf.
func (f *failing) run(body func()) {
	defer func() {
		if end := recover(); end != nil && end != any(f) {
			panic(end)
		}
	}()
	body()
}
