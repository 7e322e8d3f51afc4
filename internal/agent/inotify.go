//go:build linux

package agent

import (
	"context"
	"fmt"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// folderWatch has the kernel tell of changes in the folder. Without it the agent lists the
// folder now and then, as the kubelet does.
type folderWatch struct {
	watcher *fsnotify.Watcher
	seen    string // the folder that is watched, by device and inode
}

// watchFolder watches until the context ends.
func (a *Agent) watchFolder(ctx context.Context) *folderWatch {
	w := &folderWatch{}
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		a.trouble(fmt.Errorf("the kernel does not tell of changes in %s, which is listed every %s instead: %w", a.Self.Dir, relist, err))
		return w
	}
	w.renew(a.Self.Dir)
	go func() {
		defer func() { _ = w.watcher.Close() }()
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.watcher.Events:
			case err := <-w.watcher.Errors:
				// What was missed is in the folder, and so in the next list.
				a.Log.V(1).Info("Changes of the folder were missed", "because", fmt.Sprint(err))
			}
			a.poke()
		}
	}()
	return w
}

// renew watches the folder that is at the path now.
func (w *folderWatch) renew(path string) {
	var stat unix.Stat_t
	if w.watcher == nil || unix.Stat(path, &stat) != nil {
		return
	}
	id := fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
	if id == w.seen && len(w.watcher.WatchList()) > 0 {
		return
	}
	_ = w.watcher.Remove(path)
	if w.watcher.Add(path) == nil {
		w.seen = id
	}
}
