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

// maxNamespaces is how many namespaces are taken for those of managers: anybody may
// create a Lease of that name.
const maxNamespaces = 10

// Releaser removes every trace of Ebbtide where no manager does it any more.
type Releaser struct {
	// Client has the rights of who asks.
	Client client.Client
	// Now is the time of the API server.
	Now func() time.Time
	// Yes does what is only told of otherwise.
	Yes bool
	// Force does not mind a manager that leads.
	Force bool
	// Machines lets go of Machines and Clusters, too.
	Machines bool
	// Again is the command that was given, to which flags can be added.
	Again string
	// Out gets the list of what is done.
	Out io.Writer
}

// Run tells what would be removed, or removes it.
//
// Errors: a manager leads, or not everything could be read or removed; Out says what.
func (r Releaser) Run(ctx context.Context) error {
	s := newSurveyor(r.Client, r.Now, "Cut short by kubectl ebbtide release: what was drained was given back without waiting for anything.")
	leading, err := r.leaders(ctx, s)
	if err != nil {
		return err
	}
	groups, kept := r.look(ctx, s, leading)
	r.printPlan(groups, kept)
	unread := r.printUnread(slices.Concat(groups, kept))
	switch {
	case !r.Yes && len(unread) > 0:
		return fmt.Errorf("%s of objects could not be read, so that there may be more", phrase.Count(len(unread), "kind"))
	case !r.Yes:
		if count(groups) > 0 {
			fmt.Fprintf(r.Out, "\nNothing was changed. Do all of this with\n  %s --yes\n", r.Again)
		}
		return nil
	}
	failed := s.writeAll(ctx, groups...)
	if done := count(groups) - len(failed); done > 0 {
		fmt.Fprintf(r.Out, "\nRemoved what Ebbtide had left on %s.\n", phrase.Count(done, "object"))
	}
	if len(failed) > 0 {
		fmt.Fprintf(r.Out, "Could not remove what it had left on %s:\n", phrase.Count(len(failed), "object"))
		printFailures(r.Out, failed)
	}
	return errors.Join(r.outcome(failed, unread), r.back(ctx, failed, unread), r.held(kept))
}

// leaders refuses to interfere with a manager that is at work: it would do again what is
// undone. It returns the namespaces of managers.
func (r Releaser) leaders(ctx context.Context, s *surveyor) (namespaces []string, err error) {
	all, err := s.leaderLeases(ctx)
	if err != nil && !r.Force {
		return nil, fmt.Errorf("nobody knows whether a manager still runs, since you may not list Leases; "+
			"make sure that none does, and add --force. The API server says: %s", excerpt.Line(err.Error(), maxError))
	}
	var leading []string
	for i := range all {
		namespaces = append(namespaces, all[i].Namespace)
		if who := leader(&all[i], r.Now()); who != "" {
			leading = append(leading, who)
		}
	}
	if len(leading) > 0 && !r.Force {
		return nil, fmt.Errorf("a manager is at work and would do again what is undone here: %s.\n"+
			"Let it do this: helm uninstall, or set the stage of NodeMaintenances to Complete. If it is gone, wait until then or add --force",
			phrase.Some(leading, named))
	}
	return namespaces, nil
}

// look finds everything that is to be removed, in the order in which that is safe: first
// what refuses writes, then what a manager would act on if one came back, then what others
// act on. Kept is what is only told of.
func (r Releaser) look(ctx context.Context, s *surveyor, namespaces []string) (groups, kept []group) {
	groups, configured := s.webhooks(ctx)
	groups = append(groups, s.survey(ctx, slices.Concat(written, []kind{agents, ofClusterAPI, ofOpenShift})...)...)
	if of := s.survey(ctx, machines, clusters); r.Machines {
		groups = append(groups, of...)
	} else {
		kept = of
	}
	namespaces = slices.DeleteFunc(namespaces, func(one string) bool { return slices.Contains(configured, one) })
	if room := max(0, maxNamespaces-len(configured)); len(namespaces) > room {
		fmt.Fprintf(r.Out, "There are Leases %s in %d more namespaces, and anybody may create one. In these nothing of managers is looked for: %s\n",
			kube.LeaderLease, len(namespaces)-room, phrase.Some(namespaces[room:], named))
		namespaces = namespaces[:room]
	}
	return append(groups, s.own(ctx, append(configured, namespaces...))...), kept
}

func (r Releaser) printPlan(groups, kept []group) {
	if count(groups)+count(kept) == 0 {
		fmt.Fprintln(r.Out, "Ebbtide has left nothing that can be seen.")
		return
	}
	if count(groups) > 0 {
		fmt.Fprintf(r.Out, "Ebbtide has left something on %s:\n", phrase.Count(count(groups), "object"))
	}
	for _, g := range groups {
		printGroup(r.Out, g.kind.name, g)
	}
	for _, g := range kept {
		printGroup(r.Out, g.kind.name+", left alone without --machines", g)
	}
}

// printUnread tells of kinds that could not be read, and returns why.
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
	help := "see above why, and run %s --yes again"
	if slices.ContainsFunc(reasons, apierrors.IsForbidden) {
		help = "have somebody with more rights run %s --yes again"
	}
	return fmt.Errorf("%s; "+help, strings.Join(left, ", and "), r.Again)
}

// back looks for what is there again: somebody writes it. What could not be read before is
// told of already.
func (r Releaser) back(ctx context.Context, failed []failure, unread map[string]error) error {
	known := map[types.UID]bool{}
	for _, f := range failed {
		known[f.object.GetUID()] = true
	}
	s := newSurveyor(r.Client, r.Now, "")
	groups := s.survey(ctx, written...)
	var blind error
	for i := range groups {
		g := &groups[i]
		if g.err != nil && unread[g.kind.name] == nil {
			blind = fmt.Errorf("nobody knows whether something of Ebbtide is there again (%s); run %s --yes again", excerpt.Line(g.err.Error(), maxError), r.Again)
		}
		g.findings = slices.DeleteFunc(g.findings, func(f trace.Finding) bool {
			// Others keep it from being deleted.
			held := f.Delete && f.Without == nil && f.Object.GetDeletionTimestamp() != nil
			return held || known[f.Object.GetUID()]
		})
	}
	if count(groups) == 0 {
		return blind
	}
	return errors.Join(blind, fmt.Errorf("something of Ebbtide is there again: %s; stop its managers, and run %s --yes again",
		phrase.Some(names(groups), named), r.Again))
}

// held is about Machines and Clusters that nobody has asked to let go.
func (r Releaser) held(kept []group) error {
	if count(kept) == 0 {
		return nil
	}
	return fmt.Errorf("%d of Machines and Clusters are still held, and cannot be deleted without a manager: "+
		"add --machines to let them go, after which nobody drains their nodes", count(kept))
}
