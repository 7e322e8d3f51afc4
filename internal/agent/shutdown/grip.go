//go:build linux

package shutdown

import (
	"context"
	"io"
	"time"

	"ebbtide.dev/ebbtide/internal/agent/logind"
)

// grip is how a shutdown is held up.
type grip struct {
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

// follow takes or closes the inhibitor, and returns true if that changes what is known: it
// is held or not, or refused in other words.
func (g *grip) follow(ctx context.Context, inhibit bool, state logind.State) (moved bool) {
	held, refusal := g.lock != nil, g.refusal
	switch {
	case !inhibit:
		g.letGo()
	case g.due(state):
		g.take(ctx, state)
	}
	return held != (g.lock != nil) || refusal != g.refusal
}

// due is true if an inhibitor is to be taken: there is none, or it is that of a session that
// is over, and whoever answers now may know nothing of it. While the machine shuts down no
// new one is given for one that is held.
func (g *grip) due(state logind.State) bool {
	switch {
	case state.Fault != "":
		return false
	case g.lock != nil && (g.session == state.Session || state.Preparing):
		return false
	}
	return g.refusal == "" || g.of != state || time.Since(g.tried) >= relist
}

func (g *grip) take(ctx context.Context, state logind.State) {
	lock, err := g.logind.Inhibit(ctx)
	if err != nil {
		g.refusal, g.tried, g.of = err.Error(), time.Now(), state
		return
	}
	g.letGo()
	g.lock, g.session, g.refusal = lock, state.Session, ""
}

// letGo closes the inhibitor; without one it does nothing.
func (g *grip) letGo() {
	if g.lock != nil {
		_ = g.lock.Close() // It is gone whatever that says.
		g.lock = nil
	}
}
