package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
)

type statusOptions struct {
	genericiooptions.IOStreams
	connection
	output
	// about is the maintenance or node that is shown; nil shows all maintenances.
	about *subject
	// All includes complete ones.
	All bool
}

func newStatus(streams genericiooptions.IOStreams) *cobra.Command {
	o := &statusOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:        "status [NAME|NODE|noderollout/NAME]",
		SuggestFor: []string{"get", "list", "ls", "show", "describe"},
		Short:      "Show the progress of maintenances and what blocks them",
		Long: `Show the progress of maintenances and what blocks them.

Without a name, each maintenance is a line with its drained nodes, remaining and
blocked pods, and an estimate of the remaining time. The nodes that they keep
cordoned follow. Completed maintenances and rollouts require --all.

Rollouts in progress come last.

With a name, the nodes of the maintenance are listed with their pods and
blockers, most important first. A node stands for the maintenance that holds it,
noderollout/NAME for a rollout, as in "rollout status".
The exit code is 2 if the maintenance is blocked, and 3 if no manager acts.

Requires the verbs get and list on nodemaintenances. The command names other
objects that it cannot read. If you may get the leader's Lease in namespace
` + usualNamespace + ` or in --namespace, it also names parts of Ebbtide that lack
rights.`,
		Example: `  # Show all maintenances
  kubectl ebbtide status

  # Show one maintenance and its blockers
  kubectl ebbtide status kernel-update`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && o.All:
				return errors.New("specify a NodeMaintenance or --all, not both")
			case len(args) > 0:
				s, err := oneSubject(args, kindAny, kindMaintenance, kindNode, kindRollout)
				if err != nil {
					return err
				}
				o.about = &s
			}
			if err := o.check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.All, "all", false, "include complete maintenances")
	o.addFlag(cmd, formatJSON, formatYAML, formatWide, formatName)
	o.addFlags(cmd)
	cmd.ValidArgsFunction = o.suggest(suggestMaintenances)
	return cmd
}

// Run prints the maintenances, or one of them.
func (o *statusOptions) Run(ctx context.Context) error {
	reached, clock, _, err := o.reach(io.Discard)
	if err != nil {
		return err
	}
	r := &reading{reached: reached}
	var away bool
	if o.about != nil && o.isRollout(ctx, reached) {
		of := &rolloutOptions{IOStreams: o.IOStreams, connection: o.connection, output: o.output}
		return of.status(ctx, o.about.name)
	}
	if o.about != nil {
		names, err := o.maintenancesOf(ctx, reached, []subject{*o.about})
		switch {
		case err != nil:
			return err
		case len(names) > 1:
			return fmt.Errorf("node %q is held by %s; specify one of them", o.about.name, someOf(names))
		}
		r.Unread, away = o.managerNotes(ctx, reached, clock, o.ebbtide())
		return o.one(ctx, r, names[0], clock, away)
	}
	r.Unread, away = o.managerNotes(ctx, reached, clock, o.ebbtide())
	if err := o.list(ctx, r, clock); err != nil {
		return err
	}
	if away {
		return ended{code: codeNoManager}
	}
	return nil
}

// isRollout reports whether a rollout is meant: by its kind, or because neither a maintenance nor a node
// has this name.
func (o *statusOptions) isRollout(ctx context.Context, reached client.Client) bool {
	if o.about.kind != kindAny {
		return o.about.kind == kindRollout
	}
	for _, kind := range []schema.GroupVersionKind{maintenanceKind, nodeKind} {
		if _, err := metadataOf(ctx, reached, kind, o.about.name); !apierrors.IsNotFound(err) {
			return false
		}
	}
	_, err := metadataOf(ctx, reached, rolloutKind, o.about.name)
	return err == nil
}

// list prints a table of maintenances, of cordoned nodes and of rollouts.
func (o *statusOptions) list(ctx context.Context, r *reading, clock *clock) error {
	leftOut, err := r.all(ctx, o.All)
	if err != nil {
		return err
	}
	r.Now = timeOf(clock)
	list := view.Of(&r.Snapshot)
	o.reportUnread(list.Unread)
	if len(list.Items) == 0 && !o.isForPrograms() {
		fmt.Fprintln(o.ErrOut, noneFound(leftOut))
	}
	if len(list.Items)+len(list.Cordoned)+len(list.Rollouts) == 0 && !o.isForPrograms() {
		return nil
	}
	var names []string
	for i := range list.Items {
		names = append(names, outputName(list.Items[i].Name))
	}
	for i := range list.Rollouts {
		names = append(names, rolloutName(list.Rollouts[i].Name))
	}
	return o.print(o.Out, list, strings.Join(names, "\n"), func(to io.Writer) error {
		return printStatusTable(to, &list, textStyle{wide: o.isWide()}, leftOut, o.command("status NAME"))
	})
}

func noneFound(leftOut int) string {
	if leftOut == 0 {
		return "No NodeMaintenances found."
	}
	return fmt.Sprintf("No active NodeMaintenances. Use --all to show %d complete.", leftOut)
}

func (o *statusOptions) reportUnread(lines []string) {
	if o.isForPrograms() {
		return
	}
	for _, line := range lines {
		fmt.Fprintln(o.ErrOut, line)
	}
}

// one prints a maintenance with its nodes and blockers.
func (o *statusOptions) one(ctx context.Context, r *reading, name string, clock *clock, away bool) error {
	m := &v1alpha1.NodeMaintenance{}
	err := r.reached.Get(ctx, client.ObjectKey{Name: name}, m)
	switch {
	case apierrors.IsNotFound(err):
		return o.noMaintenance(ctx, r.reached, name)
	case err != nil:
		return fmt.Errorf("get nodemaintenance %s: %w", name, err)
	}
	r.Now = timeOf(clock)
	r.one(ctx, m)
	r.Now = timeOf(clock)
	status := view.One(&r.Snapshot)
	o.reportUnread(status.Unread)
	err = o.print(o.Out, status, outputName(status.Name), func(to io.Writer) error {
		return printStatus(to, &status, r.Now, textStyle{wide: o.isWide(), terminal: terminalOf(o.Out)})
	})
	if err == nil && (away || status.State == view.StateBlocked || status.State == view.StateInvalid) {
		return ended{code: codeOfNotDone(away)}
	}
	return err
}
