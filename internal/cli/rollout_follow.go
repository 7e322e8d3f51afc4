package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// rolloutFollowing prints the changes of a rollout and of its NodeMaintenances, a line each.
type rolloutFollowing struct {
	*rolloutOptions
	name    string
	timeout time.Duration

	// mu guards what follows, and the order of the lines.
	mu sync.Mutex
	// lines prints the NodeMaintenances.
	lines *following
	last  *view.RolloutStatus
	// observed is the generation that it describes.
	observed int64
	away     bool
}

// follow prints the progress until the rollout starts no more nodes and none is under maintenance.
//
// Errors: it does not exist or is deleted; nodes failed or are not done in time.
func (o *rolloutOptions) follow(ctx context.Context, name string, timeout time.Duration) error {
	f := &rolloutFollowing{rolloutOptions: o, name: name, timeout: timeout}
	streams := o.IOStreams
	// Standard output is for the request and its result.
	streams.Out = o.ErrOut
	f.lines = &following{IOStreams: streams, connection: &o.connection, before: map[string]*view.Status{}, over: map[string]bool{}}
	limited, stop := within(ctx, timeout)
	defer stop()
	err := f.run(limited)
	switch {
	case errors.Is(err, errTimeout):
		return ended{codeOfNotDone(f.away), f.unfinished()}
	case errors.Is(err, context.Canceled):
		return detached("%s", f.resumeWith())
	case err != nil:
		return err
	}
	return f.result()
}

// run follows the rollout, and beside it the NodeMaintenances.
func (f *rolloutFollowing) run(ctx context.Context) error {
	// The first read reports errors that a watch would retry.
	r, err := f.rolloutOf(ctx, f.reached, f.name)
	if err != nil {
		return err
	}
	f.lines.synchronise(f.clock)
	notes, away := f.managerNotes(ctx, f.reached, f.clock, f.ebbtide())
	f.warn(notes...)
	if f.away = away; f.update(r) {
		return nil
	}
	both, stop := context.WithCancel(ctx)
	beside := make(chan struct{})
	go func() {
		defer close(beside)
		f.followMaintenances(both)
	}()
	err = f.await(ctx)
	stop()
	<-beside
	return err
}

// followMaintenances prints the changes of the NodeMaintenances. The rollout is followed whether they can be
// read or not.
func (f *rolloutFollowing) followMaintenances(ctx context.Context) {
	w := &watcher{reached: f.reached, of: client.MatchingLabels{v1alpha1.RolloutLabel: f.name}}
	_ = w.run(ctx, func(s sight) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.lines.printLost(s, f.clock); s.lost != nil {
			return nil
		}
		list := f.lines.statuses(s)
		for i := range list.Items {
			f.printNodes(&list.Items[i])
		}
		return nil
	})
}

// printNodes prints what has changed on the node of a maintenance. The rollout reports its stage.
func (f *rolloutFollowing) printNodes(one *view.Status) {
	for _, line := range view.Changes(f.lines.before[one.Name], one) {
		if !strings.HasPrefix(line, one.Name+": ") {
			fmt.Fprintln(f.ErrOut, f.lines.stamp(), line)
		}
	}
	f.lines.before[one.Name] = one
}

// await watches the rollout until it has ended.
func (f *rolloutFollowing) await(ctx context.Context) error {
	one := watching(f.reached, &v1alpha1.NodeRolloutList{}, fields.OneTermEqualSelector("metadata.name", f.name))
	_, err := watchtools.UntilWithSync(ctx, one, &v1alpha1.NodeRollout{}, func(known cache.Store) (bool, error) {
		for _, object := range known.List() {
			if r, ok := object.(*v1alpha1.NodeRollout); ok {
				return f.update(r), nil
			}
		}
		return false, f.gone()
	}, func(event watch.Event) (bool, error) {
		r, ok := event.Object.(*v1alpha1.NodeRollout)
		switch {
		case !ok:
			return false, nil
		case event.Type == watch.Deleted:
			return false, f.gone()
		}
		return f.update(r), nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (f *rolloutFollowing) gone() error {
	return notDone("NodeRollout %s was deleted before it was complete", f.name)
}

// update prints the changes of the rollout, and reports whether it has ended.
func (f *rolloutFollowing) update(r *v1alpha1.NodeRollout) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && r.Status.ObservedGeneration < f.observed {
		return f.last.Ended() // The cache of the API server is behind the first read.
	}
	f.observed = r.Status.ObservedGeneration
	now := view.RolloutOf(r)
	for _, line := range view.RolloutChanges(f.last, &now) {
		fmt.Fprintln(f.ErrOut, f.lines.stamp(), line)
	}
	if !now.Outdated || f.last == nil {
		f.last = &now
	}
	return now.Ended()
}

// result prints how the rollout has ended.
func (f *rolloutFollowing) result() error {
	if f.last.State != view.StateComplete || f.last.FailedCount > 0 {
		return ended{code: codeOfNotDone(f.away), text: f.unfinished()}
	}
	to := f.Out
	if f.isForPrograms() {
		to = f.ErrOut
	}
	return f.printDone(to)
}

func (f *rolloutFollowing) printDone(to io.Writer) error {
	if f.last.After == v1alpha1.AfterStayDrained {
		_, err := fmt.Fprintf(to, "Drained %s. Return to service with\n  %s\n", doneWords(f.last), f.command("complete noderollout/%s", f.name))
		return err
	}
	_, err := fmt.Fprintf(to, "NodeRollout %s is complete: %s\n", f.name, f.last.Brief())
	return err
}

// doneWords counts the nodes that are done, and those that were skipped.
func doneWords(s *view.RolloutStatus) string {
	words := countNodes(s.DoneCount)
	if s.SkippedCount > 0 {
		words += fmt.Sprintf(", skipped %d", s.SkippedCount)
	}
	return words
}

// unfinished describes what is not done.
func (f *rolloutFollowing) unfinished() string {
	text := ""
	if f.last == nil {
		return "The cluster did not answer.\n" + f.resumeWith()
	}
	if !f.last.Ended() {
		text = fmt.Sprintf("Timed out after %s.\n", f.timeout)
	}
	for i, line := range view.RolloutWhy(f.last) {
		if i > 0 {
			text += "\n  "
		}
		text += line
	}
	if f.last.Ended() {
		return text
	}
	return text + "\n" + f.resumeWith()
}

// resumeWith returns how to follow the rollout again.
func (f *rolloutFollowing) resumeWith() string {
	return "The rollout continues in the background. Watch it with\n  " + f.command("rollout watch %s", f.name)
}
