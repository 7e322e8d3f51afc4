package cluster

import (
	"context"
	"slices"
	"sync"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/patience"
)

// Manager is the controller manager of a control plane, a process under its
// own identity. Tests share it, as they share the control plane.
type Manager struct {
	plane *plane
	args  []string

	mu      sync.Mutex
	running *sandbox.Manager
}

// StartManager returns the manager, running. It ends with the test process.
// When the test fails, what it logged last about the test is shown.
func (c *Cluster) StartManager(t testing.TB) *Manager {
	t.Helper()
	m := &c.plane.manager
	m.Start(t)
	c.explain(t, "the manager", m.log)
	return m
}

// Start starts the manager unless it runs.
func (m *Manager) Start(t testing.TB) {
	t.Helper()
	// A test that killed it may start it again in a cleanup.
	ctx, cancel := patience.Context(t)
	defer cancel()
	if err := m.start(ctx); err != nil {
		t.Fatal(err)
	}
}

func (m *Manager) start(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.alive() {
		return nil
	}
	args := slices.Clone(m.args)
	if m.plane.tap != nil {
		args = append(args, "--kubeconfig="+m.plane.tap.kubeconfig)
	}
	running, err := m.plane.StartManager(ctx, args...)
	if err != nil {
		return err
	}
	m.running = running
	return nil
}

// Kill ends the manager at once, as a crash would.
func (m *Manager) Kill(t testing.TB) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.alive() {
		t.Fatal("the manager to be killed does not run")
	}
	m.running.Kill()
}

// crash kills the manager, and returns false if it does not run.
func (m *Manager) crash() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.alive() {
		return false
	}
	m.running.Kill()
	return true
}

// log is that of the manager that ran last.
func (m *Manager) log() logged {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == nil {
		return nil
	}
	return m.running
}

func (m *Manager) alive() bool {
	if m.running == nil {
		return false
	}
	select {
	case <-m.running.Done():
		return false
	default:
		return true
	}
}

// StartManagerWith starts a manager of the test's own, whose arguments override those that
// others have, on a control plane that no other test starts one on. It ends with the test.
func (c *Cluster) StartManagerWith(t testing.TB, args ...string) *sandbox.Manager {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	m, err := c.plane.StartManager(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	return m
}
