//go:build linux

package disk

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Caller makes the system calls that change something. Tests end the process behind any of
// them.
type Caller interface {
	// Call makes one, whose name is for errors.
	Call(name string, call func() error) error
}

// Kernel is the caller of programs.
type Kernel struct{}

// Call makes a system call.
//
// Errors: in the words of the kernel, behind the name of the call.
func (Kernel) Call(name string, call func() error) error {
	if err := call(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// SyncDir has renames in a folder on disk.
//
// Errors: in the words of the kernel.
func SyncDir(c Caller, dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return c.Call("fsync "+dir, func() error { return unix.Fsync(int(f.Fd())) })
}
