package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Mode is what becomes of what is going on when Ebbtide is to be uninstalled.
type Mode string

const (
	// Complete ends it. Machines are not ended: their deletion would take instances away.
	Complete Mode = "Complete"
	// Refuse has somebody end it first.
	Refuse Mode = "Refuse"
)

// ParseMode reads the value of a flag.
//
// Errors: it is none of the modes.
func ParseMode(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case Complete, Refuse:
		return mode, nil
	}
	return "", errors.New("must be Complete or Refuse")
}

const (
	// settles is how long managers are given to take back what follows the end of
	// maintenances, before it is done for them.
	settles = 20 * time.Second
	// between is the least time between two looks at everything.
	between = time.Second
	// cleans is how often traces are removed that somebody writes again.
	cleans = 3
)

// Hook leaves nothing behind while managers still run, right before their chart is deleted.
type Hook struct {
	// Client is that of the account of the hook.
	Client client.WithWatch
	// Namespace is that of the managers.
	Namespace string
	// ServiceAccount is theirs: what they have made there goes when it goes. Without one
	// that is left to others.
	ServiceAccount string
	// Mode is what becomes of what is going on.
	Mode Mode
	// Timeout is how long all of it may take.
	Timeout time.Duration
	// Out gets what is done.
	Out io.Writer
}

// Run returns when nothing is left.
//
// Errors: something is going on that it does not end, or that did not end in time. Then
// nothing is in the way of going on without uninstalling.
func (h Hook) Run(ctx context.Context) error {
	work, cancel := context.WithTimeoutCause(ctx, h.Timeout, fmt.Errorf("it was not over after %s", h.Timeout))
	defer cancel()
	err := h.empty(work)
	if err == nil && h.ServiceAccount != "" {
		if err = h.inherit(work); err == nil {
			return nil
		}
	}
	// Also when the time is up.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), closesWithin)
	defer cancel()
	return errors.Join(err, door{h.Client, h.Namespace}.open(ctx))
}

// empty ends everything and removes every trace.
func (h Hook) empty(ctx context.Context) error {
	s := newSurveyor(h.Client, time.Now, "Cut short: Ebbtide was uninstalled.")
	// Nobody can begin anything between this look and the end, so that it is the last.
	shut, err := door{h.Client, h.Namespace}.close(ctx)
	if err != nil {
		return err
	}
	if !shut {
		fmt.Fprintf(h.Out, "warning: policy %s is not installed, so that what is begun from now on may be left behind\n", doorName)
	}
	if err := h.permit(ctx, s); err != nil {
		return err
	}
	if err := h.last(ctx, s); err != nil {
		return err
	}
	return h.sweep(ctx, s)
}

// last is the end of what is going on, or a second look by a hook that ends nothing: other
// API servers may have heard a moment later that the door is closed.
func (h Hook) last(ctx context.Context, s *surveyor) error {
	if h.Mode != Refuse {
		return h.end(ctx, s)
	}
	kube.Wait(ctx, between)
	return h.permit(ctx, s)
}

// sweep removes what is left when managers have had the time to do so. Locks they leave to
// their owners, so that there is nothing to wait for.
func (h Hook) sweep(ctx context.Context, s *surveyor) error {
	if err := h.settle(ctx, s, nodes, pods); err != nil {
		return err
	}
	for n := 0; ; n++ {
		groups := s.survey(ctx, written...)
		if err := unread(groups); err != nil {
			return err
		}
		if count(groups) == 0 {
			fmt.Fprintln(h.Out, "Nothing of Ebbtide is left on any object.")
			return nil
		}
		if n == cleans {
			return fmt.Errorf("something of Ebbtide is there again and again: %s", phrase.Some(names(groups), named))
		}
		fmt.Fprintf(h.Out, "Removing what is left on %s:\n", phrase.Count(count(groups), "object"))
		for _, g := range groups {
			printGroup(h.Out, g.kind.name, g)
		}
		if failed := s.writeAll(ctx, groups...); len(failed) > 0 {
			printFailures(h.Out, failed)
			return fmt.Errorf("%s of what Ebbtide has left could not be removed, see above", phrase.Count(len(failed), "object"))
		}
	}
}

// settle waits until managers have taken everything back, and no longer than they need for
// that.
func (h Hook) settle(ctx context.Context, s *surveyor, kinds ...kind) error {
	ctx, cancel := context.WithTimeout(ctx, settles)
	defer cancel()
	err := h.until(ctx, func() (bool, error) {
		groups := s.survey(ctx, kinds...)
		return settling(groups) == 0, unread(groups)
	}, kinds...)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// until looks again whenever objects of these kinds have changed, until it is over.
//
// Errors: it cannot look, or the time is up.
func (h Hook) until(ctx context.Context, look func() (over bool, err error), kinds ...kind) error {
	changed, err := watch(ctx, h.Client, kinds...)
	if err != nil {
		return err
	}
	defer changed.end()
	for {
		if over, err := look(); over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed.happened:
			if !kube.Wait(ctx, between) {
				return context.Cause(ctx)
			}
		}
	}
}

// unread is why not everything could be read.
func unread(groups []group) error {
	var all []error
	for _, g := range groups {
		all = append(all, g.err)
	}
	return errors.Join(all...)
}

// names are those of what bears something.
func names(groups []group) (all []string) {
	for _, g := range groups {
		for _, finding := range g.findings {
			all = append(all, g.kind.name+" "+nameOf(finding.Object))
		}
	}
	return all
}
