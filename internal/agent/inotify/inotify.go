//go:build linux

// Package inotify has the kernel tell that something has changed in folders. It wakes, and
// says nothing more: what is in them is read anew.
package inotify

import (
	"context"
	"fmt"
	"slices"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// Watch is a watch of folders.
type Watch struct {
	watcher *fsnotify.Watcher
	// seen are the folders that are watched, by path: their devices and inodes.
	seen map[string]string
}

// Start calls changed for every change in the folders that are followed, until the context
// ends. The watch can be used with an error too, and tells nothing then.
//
// Errors: the kernel has no watches left.
func Start(ctx context.Context, changed func()) (*Watch, error) {
	w := &Watch{seen: map[string]string{}}
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		return w, fmt.Errorf("the kernel does not tell of changes in folders: %w", err)
	}
	go func() {
		defer func() { _ = w.watcher.Close() }()
		// What was missed, of which an error tells, is in the folder, and so in what is read next.
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

// Follow watches the folder that is at a path now. It is called again now and then, as
// there may be none, or another one later.
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
