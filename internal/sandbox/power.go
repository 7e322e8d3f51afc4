package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Switch changes the power of a real node.
type Switch string

// The positions of a Switch.
const (
	Off Switch = "off"
	On  Switch = "on"
)

const (
	// powerSocket carries switches to the keeper of a sandbox.
	powerSocket = "power"
	// powerWithin bounds how long a node may take to boot or to end.
	powerWithin = startWithin
)

// Power switches a real node of the sandbox off, which ends everything on it at once, or on.
//
// Errors: no sandbox is up; it has no real nodes, or none of this name; the node is on already.
func (b Background) Power(ctx context.Context, node string, s Switch) error {
	if !b.Up() {
		return fmt.Errorf("no sandbox is up in %s", b.Dir)
	}
	if _, err := os.Stat(filepath.Join(b.Dir, powerSocket)); err != nil {
		return errNoRealNodes
	}
	client := &http.Client{Timeout: powerWithin, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
			err = b.withSocket(func(path string) error {
				conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
				return err
			})
			return conn, err
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sandbox/"+string(s), strings.NewReader(node))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("switch node %s %s: %w", node, s, err)
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(answer)))
	}
	return nil
}

// withSocket calls f with a path of the socket that is short enough for one, however long
// that of the folder is.
func (b Background) withSocket(f func(path string) error) error {
	dir, err := os.Open(b.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), powerSocket))
}

// servePower lets Power act on the cluster, if it has real nodes, until stopped.
func (b Background) servePower(ctx context.Context, c *Cluster) (stop func() error, err error) {
	if c.rack == nil {
		return func() error { return nil }, nil
	}
	var listener net.Listener
	err = b.withSocket(func(path string) error {
		listener, err = net.Listen("unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen for the power of nodes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /off", switching(func(name string) error { return c.PowerOff(name) }))
	mux.HandleFunc("POST /on", switching(func(name string) error { return c.PowerOn(ctx, name) }))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: powerWithin}
	go func() { _ = server.Serve(listener) }()
	return server.Close, nil
}

func switching(f func(node string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, err := io.ReadAll(io.LimitReader(r.Body, 253))
		if err == nil {
			err = f(string(name))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	}
}
