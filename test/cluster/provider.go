package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"

	"ebbtide.dev/ebbtide/internal/sandbox/provider"
)

// running is the sandbox's provider of a control plane, in this process. Tests
// share it, as they share the control plane.
type running struct {
	once   sync.Once
	cancel context.CancelFunc
	ended  chan error
}

// StartProvider has SandboxMachines become nodes, SandboxConfigs bootstrap data,
// and volumes of the CSI driver sandbox.ebbtide.dev attached, from now on and
// until the test process ends.
func (c *Cluster) StartProvider(t testing.TB) {
	t.Helper()
	p := &c.plane.provider
	p.once.Do(func() {
		var ctx context.Context
		ctx, p.cancel = context.WithCancel(context.Background())
		p.ended = make(chan error, 1)
		go func() { p.ended <- provider.Run(ctx, c.Config, logr.Discard()) }()
	})
	select {
	case err := <-p.ended:
		p.ended <- err
		t.Fatalf("the provider has ended: %v", err)
	default:
	}
}

// stop ends the provider before its control plane ends.
func (p *running) stop() int {
	if p.cancel == nil {
		return 0
	}
	p.cancel()
	if err := <-p.ended; err != nil {
		fmt.Fprintln(os.Stderr, "stop provider:", err)
		return 1
	}
	return 0
}
