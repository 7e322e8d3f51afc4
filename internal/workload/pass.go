package workload

import (
	"context"
	"sync"
)

// pass is everything that somebody does with what was read of clusters.
type pass struct {
	mu       sync.Mutex
	releases []func()
}

type passKey struct{}

// Pass has the memory for everything that is read with the context stay reserved until the
// returned function is called: what was read is to be dropped by then. Without it memory is
// reserved while a response is read, and no longer.
func Pass(ctx context.Context) (own context.Context, end func()) {
	p := &pass{}
	return context.WithValue(ctx, passKey{}, p), p.end
}

// passOf is the pass that a context is of; nil if it is of none.
func passOf(ctx context.Context) *pass {
	p, _ := ctx.Value(passKey{}).(*pass)
	return p
}

func (p *pass) add(release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releases = append(p.releases, release)
}

func (p *pass) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, release := range p.releases {
		release()
	}
	p.releases = nil
}
