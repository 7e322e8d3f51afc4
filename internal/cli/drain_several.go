package cli

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

// refuseSeveral rejects the drain of several nodes without --all-at-once. The error names what would
// be down, and a loop.
func (o *drainOptions) refuseSeveral(ctx context.Context, m *v1alpha1.NodeMaintenance, names []string) error {
	if o.AllAtOnce || len(names) < 2 {
		return nil
	}
	s := &survey{reached: o.reached, ebbtide: o.ebbtide()}
	var err error
	if s.nodes, err = pages(ctx, o.reached, &corev1.NodeList{}, slimNode); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	if err := s.read(ctx, s.everything()...); err != nil {
		return err
	}
	snapshot := s.snapshot(timeOf(o.clock))
	snapshot.Maintenance, snapshot.Place = m.DeepCopy(), nil
	snapshot.Maintenance.Spec.Stage = v1alpha1.StageDrain
	slices.Sort(names)
	return final(fmt.Errorf("%d nodes would be drained at the same time: %s. %s\nDrain one node after the other with this loop, where WORK is your command:\n  %s\nTo drain all at the same time, add --all-at-once",
		len(names), someOf(names), downWords(preflight.Of(snapshot)), o.loop(names)))
}

// downWords describes which applications would be down.
func downWords(f preflight.Forecast) string {
	for _, u := range f.Unread {
		if u.Kind == "Pod" || u.Kind == "PodDisruptionBudget" {
			return fmt.Sprintf("Cannot determine which applications would be down: list %s: %s.", u.Kind, excerpt.Line(u.Why, maxText))
		}
	}
	if len(f.Outages) == 0 {
		return "Applications with several pods stay up by ready replicas elsewhere or PodDisruptionBudgets."
	}
	return "These applications would be down, because all of their pods leave without a PodDisruptionBudget: " + phrase.Some(outages(f.Outages), maxLost) + "."
}

// loop returns the command that drains the nodes one after the other with the given flags.
func (o *drainOptions) loop(names []string) string {
	nodes := command.Names(names...)
	switch {
	case o.Selector != "":
		nodes = command.Join("$(kubectl get nodes -l %s -o name%s)", command.Quote(o.Selector), o.again(""))
	case len(names) > maxNamed:
		nodes = command.Join("NODE...")
	}
	flags := command.Quoted{}
	for _, name := range specFlags {
		if flag := o.flags.Lookup(name); flag.Changed && name != "selector" {
			flags = command.Join("%s --%s=%s", flags, command.Quote(name), command.Quote(flag.Value.String()))
		}
	}
	return command.Of("for node in %s; do %s%s && WORK && %s || break; done", nodes,
		command.Join("%s drain $node%s", commandName(), o.again("")), flags, command.Join("%s complete $node%s", commandName(), o.again("")))
}
