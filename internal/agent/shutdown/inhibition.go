//go:build linux

package shutdown

import (
	"context"
	"io"
	"time"

	"ebbtide.dev/ebbtide/internal/agent/logind"
)

// inhibition delays the shutdown of the machine.
type inhibition struct {
	logind  Logind
	lock    io.Closer
	session int
	// refusal explains, as of tried, why this session has no inhibitor.
	refusal string
	tried   time.Time
	of      logind.State
}

// ensure takes or closes the inhibitor, and reports whether its state or refusal changed.
func (i *inhibition) ensure(ctx context.Context, inhibit bool, state logind.State) (moved bool) {
	held, refusal := i.lock != nil, i.refusal
	switch {
	case !inhibit:
		i.release()
	case i.isDue(state):
		i.take(ctx, state)
	}
	return held != (i.lock != nil) || refusal != i.refusal
}

// isDue reports whether an inhibitor must be taken: there is none, or logind may have lost it.
// During a shutdown a held one is kept.
func (i *inhibition) isDue(state logind.State) bool {
	switch {
	case state.Fault != "":
		return false
	case i.lock != nil && (i.session == state.Session || state.Preparing):
		return false
	}
	return i.refusal == "" || i.of != state || time.Since(i.tried) >= relist
}

func (i *inhibition) take(ctx context.Context, state logind.State) {
	lock, err := i.logind.Inhibit(ctx)
	if err != nil {
		i.refusal, i.tried, i.of = err.Error(), time.Now(), state
		return
	}
	i.release()
	i.lock, i.session, i.refusal = lock, state.Session, ""
}

func (i *inhibition) release() {
	if i.lock != nil {
		_ = i.lock.Close() // It is gone whatever that says.
		i.lock = nil
	}
}
