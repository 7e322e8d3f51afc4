//go:build linux

package shutdown

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent/inotify"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent/shutdown"
)

// watchSchedule watches the file. The result must be called regularly, as the folder may be created
// later.
func (l *Loop) watchSchedule(ctx context.Context) (renew func()) {
	if l.Wish == v1alpha1.ShutdownModeOff {
		return func() {}
	}
	watch, err := inotify.Start(ctx, l.Wake)
	if err != nil {
		l.logTrouble(fmt.Sprintf("%v; %s is read every %s instead", err, l.schedule.Path(), relist))
	}
	return func() {
		watch.Follow(filepath.Dir(l.ScheduleDir))
		watch.Follow(l.ScheduleDir)
	}
}

// readSchedule returns the schedule, or nil. An unreadable file changes nothing.
func (l *Loop) readSchedule() *core.Schedule {
	data, err := l.schedule.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var schedule *core.Schedule
	if err == nil {
		schedule, err = core.ParseSchedule(string(data))
	}
	if err == nil {
		return schedule
	}
	l.logTrouble(fmt.Sprintf("%s cannot be read: %v", l.schedule.Path(), err))
	if l.entry == nil || l.entry.Phase != v1alpha1.ShutdownScheduled {
		return nil
	}
	return &core.Schedule{At: l.entry.Deadline, Type: l.entry.Type}
}
