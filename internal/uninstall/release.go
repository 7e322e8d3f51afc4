package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/trace"
	"ebbtide.dev/ebbtide/internal/kube"
)

// maxNamespaces bounds the namespaces of managers, as any user may create a Lease of that name.
const maxNamespaces = 10

// Releaser removes all traces of Ebbtide without a manager.
type Releaser struct {
	// Client has the user's rights.
	Client client.Client
	// Now returns the time of the API server.
	Now func() time.Time
	// Yes makes the changes, which are only listed otherwise.
	Yes bool
	// Force ignores a manager that leads.
	Force bool
	// Machines also releases Machines and Clusters.
	Machines bool
	// Again is the command, without --yes.
	Again string
	// Out receives the list of changes.
	Out io.Writer
}

// Run lists or makes the changes.
//
// Errors: a manager leads, or objects could not be read or changed, which Out lists.
func (r Releaser) Run(ctx context.Context) error {
	s := newSurveyor(r.Client, r.Now, "Cut short by kubectl ebbtide release: what was drained was given back without waiting for anything.")
	leading, err := r.leaders(ctx, s)
	if err != nil {
		return err
	}
	groups, kept := r.find(ctx, s, leading)
	r.printPlan(groups, kept)
	unread := r.printUnread(slices.Concat(groups, kept))
	switch {
	case !r.Yes && len(unread) > 0:
		return fmt.Errorf("%s of objects could not be read, so there may be more", phrase.Count(len(unread), "kind"))
	case !r.Yes:
		if count(groups) > 0 {
			fmt.Fprintf(r.Out, "\nNothing was changed. Make these changes with\n  %s --yes\n", r.Again)
		}
		return nil
	}
	failed := s.writeAll(ctx, groups...)
	if done := count(groups) - len(failed); done > 0 {
		fmt.Fprintf(r.Out, "\nRemoved the traces of Ebbtide on %s.\n", phrase.Count(done, "object"))
	}
	if len(failed) > 0 {
		fmt.Fprintf(r.Out, "Could not remove the traces on %s:\n", phrase.Count(len(failed), "object"))
		printFailures(r.Out, failed)
	}
	return errors.Join(r.outcome(failed, unread), r.reappeared(ctx, failed, unread), r.held(kept))
}

// leaders returns the namespaces of managers. A manager that leads is an error, as it would redo the
// changes.
func (r Releaser) leaders(ctx context.Context, s *surveyor) (namespaces []string, err error) {
	all, err := s.leaderLeases(ctx)
	if err != nil && !r.Force {
		return nil, fmt.Errorf("cannot determine whether a manager is running: list Leases: %s. "+
			"Check that none is running, and add --force", excerpt.Line(err.Error(), maxError))
	}
	var leading []string
	for i := range all {
		namespaces = append(namespaces, all[i].Namespace)
		if who := leader(&all[i], r.Now()); who != "" {
			leading = append(leading, who)
		}
	}
	if len(leading) > 0 && !r.Force {
		return nil, fmt.Errorf("a manager is running and would redo the changes: %s.\n"+
			"Use helm uninstall, or complete the NodeMaintenances. If the manager is gone, wait until then or add --force",
			phrase.Some(leading, named))
	}
	return namespaces, nil
}

// find returns the traces in a safe order: first webhooks, which reject writes, then what a manager would
// act on, then what others act on. Kept is only listed.
func (r Releaser) find(ctx context.Context, s *surveyor, namespaces []string) (groups, kept []group) {
	groups, configured := s.webhooks(ctx)
	groups = append(groups, s.survey(ctx, slices.Concat(written, []kind{agents, ofClusterAPI, ofOpenShift})...)...)
	if of := s.survey(ctx, machines, clusters); r.Machines {
		groups = append(groups, of...)
	} else {
		kept = of
	}
	namespaces = slices.DeleteFunc(namespaces, func(one string) bool { return slices.Contains(configured, one) })
	if room := max(0, maxNamespaces-len(configured)); len(namespaces) > room {
		fmt.Fprintf(r.Out, "Skipped %[2]d more namespaces with a Lease %[1]s, as any user may create one: %[3]s\n",
			kube.LeaderLease, len(namespaces)-room, phrase.Some(namespaces[room:], named))
		namespaces = namespaces[:room]
	}
	return append(groups, s.own(ctx, append(configured, namespaces...))...), kept
}

func (r Releaser) printPlan(groups, kept []group) {
	if count(groups)+count(kept) == 0 {
		fmt.Fprintln(r.Out, "No traces of Ebbtide found.")
		return
	}
	if count(groups) > 0 {
		fmt.Fprintf(r.Out, "Ebbtide has left traces on %s:\n", phrase.Count(count(groups), "object"))
	}
	for _, g := range groups {
		printGroup(r.Out, g.kind.name, g)
	}
	for _, g := range kept {
		printGroup(r.Out, g.kind.name+", kept without --machines", g)
	}
}

// printUnread prints the kinds that could not be read, and returns the errors.
func (r Releaser) printUnread(groups []group) map[string]error {
	unread := map[string]error{}
	for _, g := range groups {
		if g.err != nil {
			unread[g.kind.name] = g.err
			fmt.Fprintf(r.Out, "Could not read every %s: %s\n", g.kind.name, excerpt.Line(g.err.Error(), maxError))
		}
	}
	return unread
}

func (r Releaser) outcome(failed []failure, unread map[string]error) error {
	var left []string
	reasons := slices.Collect(maps.Values(unread))
	if len(failed) > 0 {
		left = append(left, phrase.Count(len(failed), "object")+" could not be changed")
	}
	for _, f := range failed {
		reasons = append(reasons, f.err)
	}
	if len(unread) > 0 {
		left = append(left, phrase.Count(len(unread), "kind")+" of objects could not be read")
	}
	if len(left) == 0 {
		return nil
	}
	help := "see above, and run %s --yes again"
	if slices.ContainsFunc(reasons, apierrors.IsForbidden) {
		help = "ask a user with more rights to run %s --yes again"
	}
	return fmt.Errorf("%s; "+help, strings.Join(left, ", and "), r.Again)
}

// reappeared looks for traces that were written again.
func (r Releaser) reappeared(ctx context.Context, failed []failure, unread map[string]error) error {
	known := map[types.UID]bool{}
	for _, f := range failed {
		known[f.object.GetUID()] = true
	}
	s := newSurveyor(r.Client, r.Now, "")
	groups := s.survey(ctx, written...)
	var unknown error
	for i := range groups {
		g := &groups[i]
		if g.err != nil && unread[g.kind.name] == nil {
			unknown = fmt.Errorf("cannot determine whether traces of Ebbtide have reappeared (%s); run %s --yes again", excerpt.Line(g.err.Error(), maxError), r.Again)
		}
		g.findings = slices.DeleteFunc(g.findings, func(f trace.Finding) bool {
			// Finalizers of others delay the deletion.
			held := f.Delete && f.Without == nil && f.Object.GetDeletionTimestamp() != nil
			return held || known[f.Object.GetUID()]
		})
	}
	if count(groups) == 0 {
		return unknown
	}
	return errors.Join(unknown, fmt.Errorf("traces of Ebbtide have reappeared: %s; stop its managers, and run %s --yes again",
		phrase.Some(names(groups), named), r.Again))
}

// held is the error of Machines and Clusters that are kept.
func (r Releaser) held(kept []group) error {
	if count(kept) == 0 {
		return nil
	}
	return fmt.Errorf("%d Machines and Clusters cannot be deleted without a manager; "+
		"add --machines to release them, after which their nodes are not drained", count(kept))
}
