package machine

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/test/patience"
)

// scarce is a listener for which there is no file descriptor at first.
type scarce struct {
	net.Listener
	failed bool
}

func (s *scarce) Accept() (net.Conn, error) {
	if !s.failed {
		s.failed = true
		return nil, syscall.EMFILE
	}
	return s.Listener.Accept()
}

// A process that runs out of file descriptors for a moment does not lose the way to its API
// server for good. When the listener is closed, the forwarder ends.
func TestAForwarderThatCannotTakeAConnectionTakesTheNext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		forward(&scarce{Listener: listener}, func() (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				_, _ = io.WriteString(there, "the API server")
				_ = there.Close()
			}()
			return here, nil
		})
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience.Bound)); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); err != nil || string(said) != "the API server" {
		t.Errorf("got %q, %v", said, err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	patience.Receive(t, "the end without a listener", ended)
}
