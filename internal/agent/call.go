//go:build linux

package agent

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// caller makes the system calls that change something. Tests end the process behind any of
// them.
type caller interface {
	// Call makes one, whose name is for errors.
	Call(name string, call func() error) error
}

// kernel is the caller of programs.
type kernel struct{}

func (kernel) Call(name string, call func() error) error {
	if err := call(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// syncDir has renames in a folder on disk.
func syncDir(c caller, dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return c.Call("fsync "+dir, func() error { return unix.Fsync(int(f.Fd())) })
}
