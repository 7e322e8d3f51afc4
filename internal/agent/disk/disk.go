//go:build linux

package disk

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Caller makes system calls that change the disk. Tests stop the process after any of them.
type Caller interface {
	Call(name string, call func() error) error
}

// Kernel is the Caller of programs.
type Kernel struct{}

// Call makes a system call. Its name precedes the error of the kernel.
func (Kernel) Call(name string, call func() error) error {
	if err := call(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// SyncDir flushes renames in a folder to disk.
func SyncDir(c Caller, dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return c.Call("fsync "+dir, func() error { return unix.Fsync(int(f.Fd())) })
}
