package machine

import (
	"errors"
	"io"
	"net"
	"time"
)

// acceptAgain is the pause after a connection that could not be taken.
const acceptAgain = 50 * time.Millisecond

// forward leads each connection to a listener to one that is dialled for it, until the
// listener is closed. One that cannot be taken, such as for want of file descriptors, ends
// none of those that come later.
func forward(listener net.Listener, dial func() (net.Conn, error)) {
	for {
		caller, err := listener.Accept()
		switch {
		case err == nil:
			go connect(caller, dial)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(acceptAgain)
		}
	}
}

// connect passes on what both ends say, until one of them ends.
func connect(caller net.Conn, dial func() (net.Conn, error)) {
	defer func() { _ = caller.Close() }()
	callee, err := dial()
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(callee, caller)
		_ = callee.Close()
	}()
	_, _ = io.Copy(caller, callee)
	_ = callee.Close()
}
