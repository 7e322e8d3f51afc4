//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const killSignal = syscall.SIGKILL

// signalGroup signals a process and everything that it started.
func signalGroup(pid int, signal syscall.Signal) error {
	return syscall.Kill(-pid, signal)
}

// errLocked means that another process holds a lock.
var errLocked = errors.New("locked by another process")

// tryLock takes an exclusive lock that the kernel releases when the process
// ends, however it ends, or returns errLocked.
func tryLock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// waitLock takes the same lock as soon as it is free. It calls waiting once
// when somebody else has it.
func waitLock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	unlock, err = tryLock(path)
	if errors.Is(err, errLocked) {
		waiting()
	}
	for errors.Is(err, errLocked) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
			unlock, err = tryLock(path)
		}
	}
	return unlock, err
}
