package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// following tells what becomes of maintenances as it happens, until they are drained or
// complete: a line for each change, or on a terminal one picture of all.
type following struct {
	genericiooptions.IOStreams
	*connection
	// Names are those that are followed. All that are at work if there are none.
	Names []string
	// Timeout is how long it may take; 0 is as long as it takes.
	Timeout time.Duration
	// Live shows one picture instead of lines where there is a terminal.
	Live bool

	watcher *watcher
	// clock is that of a test; nil is that of the cluster.
	clock func() time.Time
	// ahead is how far the clock of the cluster is ahead of ours.
	ahead  time.Duration
	memory view.Memory
	// before is what was shown last, by name; over are those that were deleted since.
	before map[string]*view.Status
	over   map[string]bool
	lost   bool
	// manager is what was wrong with the manager when it was last asked.
	manager []string
	// away is true if no manager acted then.
	away bool
}

// errEnded says that there is nothing more to follow.
var errEnded = errors.New("ended")

func onlyName(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }

// follow returns nil when every maintenance is drained, or complete if that is its stage.
//
// Errors: NotDone when the timeout is over, context.Canceled when the user has ended it;
// both have been told how to come back, and that the drain goes on. A maintenance that is
// not there, or is deleted before it is drained.
func (f *following) follow(ctx context.Context) error {
	reached, clock, _, err := f.reach()
	if err != nil {
		return err
	}
	if f.Names, err = f.ofNodes(ctx, reached, f.Names); err != nil {
		return err
	}
	f.before, f.over = map[string]*view.Status{}, map[string]bool{}
	f.watcher = &watcher{reached: reached, names: f.Names}
	ctx, stop := within(ctx, f.Timeout)
	defer stop()
	if f.Live && f.onTerminal() {
		err = f.picture(ctx, reached, clock)
	} else {
		err = f.lines(ctx, reached, clock)
	}
	var missing missingMaintenance
	switch {
	case errors.As(err, &missing):
		return f.noMaintenance(ctx, reached, string(missing))
	case errors.Is(err, errEnded):
		return nil
	case errors.Is(err, errLeft):
		// Whoever goes on in a shell with what needs empty nodes must not take this for done.
		return NotDone{Text: f.goesOn(), NoManager: f.away}
	case errors.Is(err, errTimeout):
		return NotDone{Text: f.late(), NoManager: f.away}
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(f.ErrOut, f.goesOn())
	}
	return err
}

var errTimeout = errors.New("timeout")

// onTerminal is true if a person sees what is printed, and can press keys.
func (f *following) onTerminal() bool {
	in, _ := f.In.(*os.File)
	return in != nil && terminalOf(in).file != nil && terminalOf(f.Out).live()
}

// lines prints a line for each change.
func (f *following) lines(ctx context.Context, reached client.Client, clock *clock) error {
	return f.watcher.run(ctx, func(s sight) error {
		if f.tellLost(s, clock); s.lost != nil {
			return nil
		}
		if s.listed {
			var notes []string
			notes, f.away = f.ofManager(ctx, reached, clock, f.ebbtide())
			f.tellManager(notes)
		}
		list := f.see(s)
		for i := range list.Items {
			if err := f.print(&list.Items[i]); err != nil {
				return err
			}
		}
		return f.conclude(list)
	})
}

// tellLost says when the cluster has ceased to answer, and when it answers again.
func (f *following) tellLost(s sight, clock *clock) {
	if s.listed {
		f.synchronise(clock)
	}
	switch {
	case s.lost != nil && !f.lost:
		fmt.Fprintf(f.ErrOut, "%s the connection is lost: %v; it is tried again\n", f.stamp(), s.lost)
	case s.lost == nil && f.lost:
		fmt.Fprintf(f.ErrOut, "%s the connection is back\n", f.stamp())
	}
	f.lost = s.lost != nil
}

// tellManager says what is wrong with the manager, once. It is asked whenever maintenances
// are listed, which is every five minutes at least.
func (f *following) tellManager(notes []string) {
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

// see is what is shown of a sight.
func (f *following) see(s sight) view.StatusList {
	now := f.now()
	shown := &view.Snapshot{Now: now, Maintenances: s.maintenances, Seen: f.memory.See(now, s.maintenances)}
	list := view.Of(shown)
	if len(f.Names) > 0 {
		return list
	}
	// Of all, those are left out that were over before anybody looked.
	kept := list.Items[:0]
	for _, one := range list.Items {
		if one.State != view.StateComplete || f.before[one.Name] != nil {
			kept = append(kept, one)
		}
	}
	list.Items = kept
	return list
}

// conclude remembers what has been shown, and finds out whether there is more to come.
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
			if err := f.gone(name, before[name]); err != nil {
				return err
			}
		}
		// Somebody may ask for the next stage of one that rests.
		moves = moves || one != nil && !one.Ended()
	}
	if !moves {
		return errEnded
	}
	return nil
}

// gone is the error of a maintenance that is not there; nil if it has done its work.
func (f *following) gone(name string, before *view.Status) error {
	switch {
	case f.over[name]:
		return nil
	case before == nil:
		return missingMaintenance(name)
	case before.Ended() || before.State == view.StateCompleting:
		f.over[name] = true
		return nil
	}
	return fmt.Errorf("NodeMaintenance %s was deleted before it was drained; it was in %s", name, before.Brief())
}

// missingMaintenance is the name of one that is not there.
type missingMaintenance string

// Error implements error.
func (m missingMaintenance) Error() string { return "there is no NodeMaintenance " + string(m) }

// noMaintenance says that there is none of this name, and which are near.
func (c *connection) noMaintenance(ctx context.Context, reached client.Client, name string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("NodeMaintenanceList"))
	known, err := pages(ctx, reached, list, whole[*metav1.PartialObjectMetadata])
	if err != nil {
		return fmt.Errorf("list nodemaintenances: %w", err)
	}
	return fmt.Errorf("%w. See which there are with\n  %s", unknownNames("NodeMaintenance", []string{name}, namesOf(known)), c.command("status"))
}

// late says what is not done when the time is over.
func (f *following) late() string {
	lines := []string{fmt.Sprintf("Not done within %s.", f.Timeout)}
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
		lines = append(lines, "The cluster has not answered.")
	}
	return strings.Join(append(lines, f.goesOn()), "\n")
}

// goesOn is what people read who look away.
func (f *following) goesOn() string {
	back := f.command("watch")
	if len(f.Names) > 0 {
		back = f.command("watch %s", command.Names(f.Names...))
	}
	return "It goes on in the cluster without you. Come back with\n  " + back
}

// synchronise has our clock tell the time of the cluster, by its last answer.
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

// stamp is the time, as messages of the cluster have it.
func (f *following) stamp() string { return f.now().UTC().Format("15:04:05Z") }
