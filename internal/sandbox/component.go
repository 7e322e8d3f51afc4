package sandbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"
)

// startWithin bounds how long a component, its kinds or its nodes may take to become ready. An
// idle machine needs a few seconds; a busy one must not fail for being slow.
const startWithin = 5 * time.Minute

// component is a program of the control plane that listens on one port.
type component struct {
	name string
	// path of the executable; that of the control plane binary when empty.
	path string
	// before, if there is one, prepares each try to start it and returns one more
	// argument.
	before func(context.Context) (arg string, err error)
	// args are its arguments when it listens on this port.
	args func(port int) []string
	// port, if the component must have this one.
	port int
	// ready is the URL, with the port as its only verb, that answers 200 when
	// the component does its work.
	ready string
}

// run starts a component on a free port and waits until it is ready. Another
// process may take the port in between; then it tries again with another one.
func (c *Cluster) run(ctx context.Context, comp component) (p *process, port int, err error) {
	if comp.path == "" {
		comp.path = c.binaries.Path(comp.name)
	}
	for range 5 {
		if port, err = comp.choosePort(); err != nil {
			return nil, 0, err
		}
		args := comp.args(port)
		if comp.before != nil {
			arg, err := comp.before(ctx)
			if err != nil {
				return nil, 0, err
			}
			args = append([]string{arg}, args...)
		}
		if p, err = c.startProcess(c.Dir, comp.name, comp.path, args); err != nil {
			return nil, 0, err
		}
		if err = p.waitReady(ctx, c.Transport(), fmt.Sprintf(comp.ready, port)); err == nil {
			c.add(p)
			return p, port, nil
		}
		p.kill()
		if !strings.Contains(p.tail(30), "address already in use") {
			return nil, 0, err
		}
	}
	return nil, 0, fmt.Errorf("%s found its port taken five times: %w", comp.name, err)
}

// waitReady returns when url answers 200, or with the reason why it will not.
func (p *process) waitReady(ctx context.Context, transport *http.Transport, url string) error {
	// Only the status is of interest; the clients check the certificate.
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	client := &http.Client{Timeout: 5 * time.Second, Transport: transport}
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, errNotReady)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		if answers(ctx, client, url) {
			return nil
		}
		select {
		case <-p.done:
			return p.failure("ended")
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errNotReady) {
				return p.failure(fmt.Sprintf("was not ready within %s", startWithin))
			}
			return ctx.Err()
		case <-tick.C:
		}
	}
}

var errNotReady = errors.New("not ready in time")

func answers(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (comp component) choosePort() (int, error) {
	if comp.port != 0 {
		return comp.port, nil
	}
	return FreePort()
}

// FreePort returns a port of 127.0.0.1 at which nobody listens. It is not of those that
// systems give to connections, so no connection takes it before it is used.
func FreePort() (int, error) {
	var taken error
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		if err == nil {
			return l.Addr().(*net.TCPAddr).Port, l.Close()
		}
		taken = err
	}
	return 0, fmt.Errorf("find a free port on 127.0.0.1: %w", taken)
}
