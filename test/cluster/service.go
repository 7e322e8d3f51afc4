package cluster

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
)

// service leads the API server's calls of webhooks to managers, as the Service of the
// chart does: a connection goes to one of them that takes it, and lasts as long as both
// its ends.
type service struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	backends []string
	open     map[net.Conn]bool
}

func newService() (*service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for calls of webhooks: %w", err)
	}
	s := &service{listener: listener, open: map[net.Conn]bool{}}
	s.running.Go(s.accept)
	return s, nil
}

func (s *service) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// add has calls lead to one more manager.
func (s *service) add(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends = append(s.backends, address)
}

// swap has calls lead to these managers, and returns where they led before.
func (s *service) swap(addresses []string) (before []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.backends = s.backends, addresses
	for conn := range s.open {
		_ = conn.Close()
	}
	return before
}

func (s *service) accept() {
	for {
		caller, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() { s.serve(caller) })
	}
}

func (s *service) serve(caller net.Conn) {
	defer s.note(caller)()
	manager, err := s.dial()
	if err != nil {
		return
	}
	defer s.note(manager)()
	s.running.Go(func() {
		_, _ = io.Copy(manager, caller)
		_ = manager.Close()
	})
	// Where one end is gone the other one is to know.
	_, _ = io.Copy(caller, manager)
}

// note remembers a connection until the returned function ends it.
func (s *service) note(conn net.Conn) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[conn] = true
	return func() {
		_ = conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, conn)
	}
}

// dial reaches one of the managers.
func (s *service) dial() (net.Conn, error) {
	s.mu.Lock()
	backends := slices.Clone(s.backends)
	s.mu.Unlock()
	rand.Shuffle(len(backends), func(i, j int) { backends[i], backends[j] = backends[j], backends[i] })
	for _, address := range backends {
		if conn, err := net.Dial("tcp", address); err == nil {
			return conn, nil
		}
	}
	return nil, errors.New("no manager takes calls")
}

// stop ends all connections.
func (s *service) stop() {
	_ = s.listener.Close()
	s.swap(nil)
	s.running.Wait()
}

// OnlyTo has the API server call the webhooks of this replica and of no other one until
// the returned function is called.
func (c *Cluster) OnlyTo(t testing.TB, one Replica) (undo func()) {
	t.Helper()
	before := c.plane.service.swap([]string{one.webhook})
	return func() { c.plane.service.swap(before) }
}
