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

// providing is the sandbox's provider of a control plane, in this process. Tests
// share it, as they share the control plane.
type providing struct {
	once sync.Once
	end  func() error
}

// StartProvider has SandboxMachines become nodes, SandboxConfigs bootstrap data,
// and volumes of the CSI driver sandbox.ebbtide.dev attached, from now on and
// until the test process ends.
func (c *Cluster) StartProvider(t testing.TB) {
	t.Helper()
	p := &c.plane.provider
	p.once.Do(func() { p.end = provider.Start(context.Background(), c.Config, logr.Discard()) })
}

// stop ends the provider before its control plane ends.
func (p *providing) stop() int {
	if p.end == nil {
		return 0
	}
	if err := p.end(); err != nil {
		fmt.Fprintln(os.Stderr, "stop provider:", err)
		return 1
	}
	return 0
}
