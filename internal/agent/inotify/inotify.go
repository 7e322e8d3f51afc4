//go:build linux

// Package inotify wakes a caller when something in folders has changed, without telling what.
package inotify

import (
	"context"
	"fmt"
	"slices"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// Watch watches folders.
type Watch struct {
	watcher *fsnotify.Watcher
	// seen are device and inode of the watched folders by path.
	seen map[string]string
}

// Start calls changed for every change in the followed folders until the context ends. If the
// kernel has no watches left it returns an error with a Watch that does nothing.
func Start(ctx context.Context, changed func()) (*Watch, error) {
	w := &Watch{seen: map[string]string{}}
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		return w, fmt.Errorf("the kernel does not tell of changes in folders: %w", err)
	}
	go func() {
		defer func() { _ = w.watcher.Close() }()
		// A missed event or an error is covered by the next read.
		for more := true; more; {
			select {
			case <-ctx.Done():
				return
			case _, more = <-w.watcher.Events:
			case _, more = <-w.watcher.Errors:
			}
			changed()
		}
	}()
	return w, nil
}

// Follow watches the folder that is at a path now. Call it regularly, as the folder may be created
// or replaced later.
func (w *Watch) Follow(path string) {
	var stat unix.Stat_t
	if w.watcher == nil || unix.Stat(path, &stat) != nil {
		return
	}
	id := fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
	if id == w.seen[path] && slices.Contains(w.watcher.WatchList(), path) {
		return
	}
	_ = w.watcher.Remove(path)
	if w.watcher.Add(path) == nil {
		w.seen[path] = id
	}
}
