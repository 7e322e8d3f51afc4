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

// Mode selects the treatment of work in progress.
type Mode string

const (
	// Complete ends it, except Machines, whose deletion would delete instances.
	Complete Mode = "Complete"
	// Refuse fails until it has ended.
	Refuse Mode = "Refuse"
)

// ParseMode reads the value of a flag.
func ParseMode(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case Complete, Refuse:
		return mode, nil
	}
	return "", errors.New("must be Complete or Refuse")
}

const (
	// settles bounds the wait for managers to clean up after the end of maintenances.
	settles = 20 * time.Second
	// between is the minimum interval between two surveys.
	between = time.Second
	// cleans bounds the removals of traces that reappear.
	cleans = 3
)

// Hook removes all traces while managers still run, right before their chart is deleted.
type Hook struct {
	// Client uses the account of the hook.
	Client client.WithWatch
	// Namespace of the managers.
	Namespace string
	// ServiceAccount deletes their objects as the managers do. Without one they remain.
	ServiceAccount string
	Mode           Mode
	// Timeout bounds the run.
	Timeout time.Duration
	// Out receives the progress.
	Out io.Writer
}

// Run returns when nothing is left.
//
// Errors: work in progress is not ended by the mode, or not in time. Ebbtide then remains usable.
func (h Hook) Run(ctx context.Context) error {
	work, cancel := context.WithTimeoutCause(ctx, h.Timeout, fmt.Errorf("timed out after %s", h.Timeout))
	defer cancel()
	err := h.empty(work)
	if err == nil && h.ServiceAccount != "" {
		if err = h.inherit(work); err == nil {
			return nil
		}
	}
	// The guard is also removed after the timeout.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), closesWithin)
	defer cancel()
	return errors.Join(err, guard{h.Client, h.Namespace}.open(ctx))
}

// empty ends everything and removes every trace.
func (h Hook) empty(ctx context.Context) error {
	s := newSurveyor(h.Client, time.Now, "Cut short: Ebbtide was uninstalled.")
	// Nothing can be created between this survey and the end.
	shut, err := guard{h.Client, h.Namespace}.close(ctx)
	if err != nil {
		return err
	}
	if !shut {
		fmt.Fprintf(h.Out, "warning: policy %s is not installed, so new NodeMaintenances may be left behind\n", guardName)
	}
	if err := h.permit(ctx, s); err != nil {
		return err
	}
	if err := h.last(ctx, s); err != nil {
		return err
	}
	return h.sweep(ctx, s)
}

// last ends work in progress, or checks a second time for it: other API servers may have seen the guard
// later.
func (h Hook) last(ctx context.Context, s *surveyor) error {
	if h.Mode != Refuse {
		return h.end(ctx, s)
	}
	kube.Wait(ctx, between)
	return h.permit(ctx, s)
}

// sweep waits for the managers to clean up, and removes the rest. Managers leave locks to their owners.
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
			fmt.Fprintln(h.Out, "No traces of Ebbtide are left.")
			return nil
		}
		if n == cleans {
			return fmt.Errorf("traces of Ebbtide keep reappearing: %s", phrase.Some(names(groups), named))
		}
		fmt.Fprintf(h.Out, "Removing the traces on %s:\n", phrase.Count(count(groups), "object"))
		for _, g := range groups {
			printGroup(h.Out, g.kind.name, g)
		}
		if failed := s.writeAll(ctx, groups...); len(failed) > 0 {
			printFailures(h.Out, failed)
			return fmt.Errorf("could not remove the traces on %s, see above", phrase.Count(len(failed), "object"))
		}
	}
}

// settle waits until managers have cleaned up, at most settles.
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

// until calls look after each change of these kinds until it is over.
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

// unread joins the errors of groups.
func unread(groups []group) error {
	var all []error
	for _, g := range groups {
		all = append(all, g.err)
	}
	return errors.Join(all...)
}

// names returns those of the objects with traces.
func names(groups []group) (all []string) {
	for _, g := range groups {
		for _, finding := range g.findings {
			all = append(all, g.kind.name+" "+nameOf(finding.Object))
		}
	}
	return all
}
