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
	logind Logind
	// lock is the inhibitor, of a session; nil if there is none.
	lock    io.Closer
	session int
	// refusal is why there is none, or none of this session; tried is when that was said,
	// and of what state.
	refusal string
	tried   time.Time
	of      logind.State
}

// ensure takes or closes the inhibitor, and returns true if that changes what is known: it
// is held or not, or refused in other words.
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

// isDue returns true if an inhibitor is to be taken: there is none, or it is that of a session that
// is over, and whoever answers now may know nothing of it. While the machine shuts down no
// new one is given for one that is held.
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

// release closes the inhibitor; without one it does nothing.
func (i *inhibition) release() {
	if i.lock != nil {
		_ = i.lock.Close() // It is gone whatever that says.
		i.lock = nil
	}
}
