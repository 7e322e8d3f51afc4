//go:build !linux

package machine

import (
	"context"
	"errors"
	"net"
	"runtime"
)

// Rack cannot be opened but on Linux.
type Rack struct{}

var errOnlyLinux = errors.New("real nodes need Linux")

func realHost() Host { return Host{OS: runtime.GOOS} }

// Open returns an error.
func Open(context.Context, Spec) (*Rack, error) { return nil, realHost().Check() }

// BootNodes returns an error, as all methods do.
func (*Rack) BootNodes(context.Context, func(string) (Credentials, error)) error { return errOnlyLinux }

// Off returns an error.
func (*Rack) Off(string) error { return errOnlyLinux }

// On returns an error.
func (*Rack) On(context.Context, string) error { return errOnlyLinux }

// IsOn returns false.
func (*Rack) IsOn(string) bool { return false }

// Import returns an error.
func (*Rack) Import(context.Context, string, string) error { return errOnlyLinux }

// LogDir returns nothing.
func (*Rack) LogDir(string) string { return "" }

// Manifests returns nothing.
func (*Rack) Manifests(string) string { return "" }

// Enter returns an error.
func (*Rack) Enter(func() error) error { return errOnlyLinux }

// Dial returns an error.
func (*Rack) Dial(context.Context, string, string) (net.Conn, error) { return nil, errOnlyLinux }

// Forward returns at once.
func (*Rack) Forward(net.Listener, string) {}

// Close has nothing to do.
func (*Rack) Close() error { return nil }

func runInit() {}

func runJanitor([]string) {}
