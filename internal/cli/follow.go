package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// following prints the changes of maintenances until they are drained or complete: one line each,
// or on a terminal a live view of all.
type following struct {
	genericiooptions.IOStreams
	*connection
	// Names are the followed maintenances; all active ones if empty.
	Names []string
	// Timeout is the time to wait; 0 waits forever.
	Timeout time.Duration
	// Live shows the live view on a terminal.
	Live bool

	subjects []subject
	watcher  *watcher
	// clock is set by tests.
	clock func() time.Time
	// ahead is the lead of the cluster's clock over ours.
	ahead  time.Duration
	memory view.Memory
	// before are the statuses shown last, by name; over are those deleted since.
	before map[string]*view.Status
	over   map[string]bool
	lost   bool
	// manager are the problems of the manager at the last check; away is true if none acted.
	manager []string
	away    bool
}

var errEnded = errors.New("ended")

// follow returns nil when every maintenance is drained, or complete if that is its stage.
//
// Errors: a timeout or interrupt, with the command to follow again; a maintenance that does not exist,
// or is deleted before it is drained.
func (f *following) follow(ctx context.Context) error {
	reached, clock, _, err := f.reach(io.Discard)
	if err != nil {
		return err
	}
	if f.Names, err = f.maintenancesOf(ctx, reached, f.subjects); err != nil {
		return err
	}
	f.before, f.over = map[string]*view.Status{}, map[string]bool{}
	f.watcher = &watcher{reached: reached, names: f.Names}
	ctx, stop := within(ctx, f.Timeout)
	defer stop()
	if f.Live && f.isOnTerminal() {
		err = f.liveView(ctx, reached, clock)
	} else {
		err = f.lines(ctx, reached, clock)
	}
	var missing missingMaintenance
	switch {
	case errors.As(err, &missing):
		return f.noMaintenance(ctx, reached, string(missing))
	case errors.Is(err, errEnded):
		return nil
	case errors.Is(err, errQuit):
		// A script must not take this for drained nodes.
		return ended{codeOfNotDone(f.away), f.resumeWith()}
	case errors.Is(err, errTimeout):
		return ended{codeOfNotDone(f.away), f.unfinished()}
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(f.ErrOut, f.resumeWith())
	}
	return err
}

var errTimeout = errors.New("timeout")

// isOnTerminal reports whether both input and output are a terminal.
func (f *following) isOnTerminal() bool {
	in, _ := f.In.(*os.File)
	return in != nil && terminalOf(in).file != nil && terminalOf(f.Out).isLive()
}

// lines prints a line for each change.
func (f *following) lines(ctx context.Context, reached client.Client, clock *clock) error {
	return f.watcher.run(ctx, func(s sight) error {
		if f.printLost(s, clock); s.lost != nil {
			return nil
		}
		if s.listed {
			var notes []string
			notes, f.away = f.managerNotes(ctx, reached, clock, f.ebbtide())
			f.printManager(notes)
		}
		list := f.statuses(s)
		for i := range list.Items {
			if err := f.print(&list.Items[i]); err != nil {
				return err
			}
		}
		return f.conclude(list)
	})
}

// printLost prints when the connection is lost and restored.
func (f *following) printLost(s sight, clock *clock) {
	if s.listed {
		f.synchronise(clock)
	}
	switch {
	case s.lost != nil && !f.lost:
		fmt.Fprintf(f.ErrOut, "%s connection lost, retrying: %v\n", f.stamp(), s.lost)
	case s.lost == nil && f.lost:
		fmt.Fprintf(f.ErrOut, "%s connection restored\n", f.stamp())
	}
	f.lost = s.lost != nil
}

// printManager prints each problem of the manager once. They are read whenever maintenances are
// listed, at least every five minutes.
func (f *following) printManager(notes []string) {
	for _, note := range notes {
		if !slices.Contains(f.manager, note) {
			fmt.Fprintln(f.ErrOut, f.stamp(), note)
		}
	}
	f.manager = notes
}

func (f *following) print(one *view.Status) error {
	for _, line := range view.Changes(f.before[one.Name], one) {
		if _, err := fmt.Fprintln(f.Out, f.stamp(), line); err != nil {
			return err
		}
	}
	return nil
}

// statuses returns the statuses of the followed maintenances.
func (f *following) statuses(s sight) view.StatusList {
	now := f.now()
	shown := &view.Snapshot{Now: now, Maintenances: s.maintenances, Seen: f.memory.See(now, s.maintenances)}
	list := view.Of(shown)
	if len(f.Names) > 0 {
		return list
	}
	// Maintenances that were complete at the start are left out.
	kept := list.Items[:0]
	for _, one := range list.Items {
		if one.State != view.StateComplete || f.before[one.Name] != nil {
			kept = append(kept, one)
		}
	}
	list.Items = kept
	return list
}

// conclude remembers the statuses, and returns errEnded if no further change is expected.
func (f *following) conclude(list view.StatusList) error {
	before, moves := f.before, false
	f.before = map[string]*view.Status{}
	for i := range list.Items {
		one := &list.Items[i]
		f.before[one.Name] = one
		moves = moves || one.Moves()
	}
	for _, name := range f.Names {
		one := f.before[name]
		if one == nil {
			if err := f.deleted(name, before[name]); err != nil {
				return err
			}
		}
		// The next stage of an idle one may be set.
		moves = moves || one != nil && !one.Ended()
	}
	if !moves {
		return errEnded
	}
	return nil
}

// deleted returns the error of a missing maintenance; nil if it was drained before.
func (f *following) deleted(name string, before *view.Status) error {
	switch {
	case f.over[name]:
		return nil
	case before == nil:
		return missingMaintenance(name)
	case before.Ended() || before.State == view.StateCompleting:
		f.over[name] = true
		return nil
	}
	return fmt.Errorf("NodeMaintenance %s was deleted before its nodes were drained; last status: %s", name, before.Brief())
}

// missingMaintenance is the name of a maintenance that does not exist.
type missingMaintenance string

// Error implements error.
func (m missingMaintenance) Error() string {
	return fmt.Sprintf("NodeMaintenance not found: %q", string(m))
}

// noMaintenance returns the error of a missing maintenance, with similar names.
func (c *connection) noMaintenance(ctx context.Context, reached client.Client, name string) error {
	known, err := metadataList(ctx, reached, maintenanceKind)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w. List them with\n  %s", notFound("NodeMaintenance", []string{name}, namesOf(known)), c.command("status"))
}

// unfinished describes what is not done at the timeout.
func (f *following) unfinished() string {
	lines := []string{fmt.Sprintf("Timed out after %s.", f.Timeout)}
	for _, name := range slices.Sorted(maps.Keys(f.before)) {
		one := f.before[name]
		if one.Ended() {
			continue
		}
		lines = append(lines, one.Name+": "+one.Brief())
		for i := range one.Blockers {
			if b := &one.Blockers[i]; !b.AtWork && i < 3 {
				lines = append(lines, "  "+b.Sentence())
			}
		}
	}
	if len(f.before) == 0 {
		lines = append(lines, "The cluster did not answer.")
	}
	return strings.Join(append(lines, f.resumeWith()), "\n")
}

// resumeWith returns how to follow the maintenances again.
func (f *following) resumeWith() string {
	back := f.command("watch")
	if len(f.Names) > 0 {
		back = f.command("watch %s", command.Names(f.Names...))
	}
	return "The drain continues in the background. Watch it with\n  " + back
}

// synchronise sets our clock by the last answer of the cluster.
func (f *following) synchronise(clock *clock) {
	if now, err := clock.now(); err == nil {
		f.ahead = time.Until(now)
	}
}

func (f *following) now() time.Time {
	if f.clock != nil {
		return f.clock()
	}
	return time.Now().Add(f.ahead)
}

// stamp returns the time of the cluster.
func (f *following) stamp() string { return f.now().UTC().Format("15:04:05Z") }
