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
func (c *Cluster) makeDir(ctx context.Context) error {
	c.Dir = c.spec.Dir
	if c.Dir == "" {
		sweep(ctx)
		dir, err := os.MkdirTemp("", workDirPattern)
		if err != nil {
			return err
		}
		c.Dir = dir
	} else if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	var err error
	c.unlock, err = tryLock(c.path(workDirLock))
	return err
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
