// Package demo runs the guided demos in a sandbox: it creates applications, asks Ebbtide for
// something, and prints what the watches see. Run drains a node and restores it; RunMachines
// follows a Machine; RunNodes stops a static pod on a real node; RunRollout maintains many nodes;
// RunEvictionRequests lets a pod say when it may be evicted. Every line of a timeline is a change of an object. A demo that
// takes too long fails.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// Demo holds the parts that all demos use.
type Demo struct {
	// Out gets the story, Progress what happens before it.
	Out, Progress io.Writer
	// Programs is the Programs of the Spec of the sandbox.
	Programs string
}

// on builds missing binaries, shows something on a control plane with the manager, and removes
// everything again.
func (d Demo) on(ctx context.Context, spec sandbox.Spec, show func(context.Context, *sandbox.Cluster) error) (err error) {
	binaries, err := sandbox.Build(ctx, sandbox.BuildSpec{Nodes: spec.RealNodes > 0, Manager: true}, d.Progress)
	if err != nil {
		return err
	}
	with := fmt.Sprintf("%d simulated nodes", spec.Nodes)
	if spec.RealNodes > 0 {
		with = "a real node"
	}
	fmt.Fprintf(d.Progress, "starting Kubernetes %s with %s\n", sandbox.RequestedVersion(), with)
	spec.Programs = d.Programs
	c, err := sandbox.Start(ctx, binaries, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	fmt.Fprintln(d.Progress, "starting the manager and the applications")
	manager, err := c.StartManager(ctx)
	if err != nil {
		return err
	}
	if err := show(ctx, c); err != nil {
		if ctx.Err() == nil {
			fmt.Fprintf(d.Progress, "the end of the manager's log:\n%s\n", manager.Tail(40))
		}
		return err
	}
	return nil
}

// story turns changes of objects into lines.
type story interface {
	// see adds one change to the story.
	see(at time.Duration, change watch.Event) error
	// lastStatus describes the progress for an error.
	lastStatus() string
}

// teller prints a story as changes arrive.
type teller struct {
	story   story
	changes <-chan watch.Event
	start   time.Time
}

// tellUntil prints until a condition holds.
func (t *teller) tellUntil(ctx context.Context, reached func() bool) error {
	return t.tell(ctx, reached, nil)
}

// tellFor prints for a while.
func (t *teller) tellFor(ctx context.Context, while time.Duration) error {
	timer := time.NewTimer(while)
	defer timer.Stop()
	return t.tell(ctx, func() bool { return false }, timer.C)
}

func (t *teller) tell(ctx context.Context, reached func() bool, enough <-chan time.Time) error {
	for !reached() {
		select {
		case change := <-t.changes:
			if err := t.story.see(time.Since(t.start), change); err != nil {
				return err
			}
		case <-enough:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), t.story.lastStatus())
		}
	}
	return nil
}
