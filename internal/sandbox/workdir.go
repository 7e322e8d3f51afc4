package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

const (
	workDirPattern = "ebbtide-sandbox-"
	workDirLock    = "lock"
)

// makeDir makes the folder of a cluster and locks it for as long as the
// process lives. The lock tells folders in use from those of killed processes.
func (c *Cluster) makeDir(ctx context.Context) (err error) {
	if c.spec.Dir != "" {
		c.Dir = c.spec.Dir
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return err
		}
		c.unlock, err = tryLock(c.path(workDirLock))
		return err
	}
	sweep(ctx)
	if c.Dir, err = os.MkdirTemp("", workDirPattern); err != nil {
		return err
	}
	// The lock is held before it has the name that sweep looks for.
	unnamed := c.path("." + workDirLock)
	if c.unlock, err = tryLock(unnamed); err != nil {
		return err
	}
	return os.Rename(unnamed, c.path(workDirLock))
}

// sweep removes what processes that were killed have left behind.
func sweep(ctx context.Context) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), workDirPattern+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return
		}
		lock := filepath.Join(dir, workDirLock)
		if _, err := os.Stat(lock); errors.Is(err, os.ErrNotExist) {
			continue // being made right now
		}
		if unlock, err := tryLock(lock); err == nil {
			_ = os.RemoveAll(dir)
			unlock()
		}
	}
}
