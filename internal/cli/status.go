package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
)

type statusOptions struct {
	genericiooptions.IOStreams
	connection
	output
	// Name is the maintenance that is shown; all if it is empty.
	Name string
	// All shows those that are over, too.
	All bool
}

func newStatus(streams genericiooptions.IOStreams) *cobra.Command {
	o := &statusOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "status [NAME|NODE]",
		Short: "Show how far maintenances are, and who blocks them",
		Long: `Show how far maintenances are, and who blocks them.

Without a name, each maintenance is a line: how many of its nodes are drained,
how many pods are left, how many of them something holds up, and about how long
it takes. Below are the nodes that they keep cordoned, and since when. That is
estimated from how its nodes were drained so far; "kubectl ebbtide watch" sees
single pods go and knows it sooner. Those that are complete are left out unless
you say --all.

With a name, its nodes are told with what is left on them and who blocks, what
matters most first. The name of a node means the maintenance that holds it. The
exit code is 2 if it is blocked, and 3 if no manager acts.

You need the verbs get and list on nodemaintenances. What you may not read of
nodes, pods, evacuations, budgets and drainrecords is said. Parts of Ebbtide
that do not run because its account lacks rights are listed first, if you may
get the Lease of its leader in namespace ` + usualNamespace + ` or the one in
--namespace.`,
		Example: `  # What is going on?
  kubectl ebbtide status

  # What is in the way of one maintenance?
  kubectl ebbtide status kernel-update`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := maintenanceNames(args)
			switch {
			case err != nil:
				return err
			case len(names) > 1:
				return fmt.Errorf("one NodeMaintenance at a time, not also %s; without a name all are shown", strings.Join(names[1:], " "))
			case len(names) == 1 && o.All:
				return errors.New("name a NodeMaintenance, or show --all of them, not both")
			case len(names) == 1:
				o.Name = names[0]
			}
			if err := o.check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.All, "all", false, "show those that are complete, too")
	o.addFlag(cmd, "Print the model, names, or more of each", formatJSON, formatYAML, formatWide, formatName)
	o.addFlags(cmd)
	cmd.ValidArgsFunction = o.suggest(suggestMaintenances)
	return cmd
}

// Run prints what is going on.
func (o *statusOptions) Run(ctx context.Context) error {
	reached, clock, _, err := o.reach()
	if err != nil {
		return err
	}
	if o.Name != "" {
		names, err := o.ofNodes(ctx, reached, []string{o.Name})
		switch {
		case err != nil:
			return err
		case len(names) > 1:
			return fmt.Errorf("%s is held by %s: name one of them", o.Name, someOf(names))
		}
		o.Name = names[0]
		return o.one(ctx, reached, clock)
	}
	r := &reading{reached: reached}
	var away bool
	r.Unread, away = o.ofManager(ctx, reached, clock, o.ebbtide())
	leftOut, err := r.all(ctx, o.All)
	if err != nil {
		return err
	}
	r.Now = timeOf(clock)
	list := view.Of(&r.Snapshot)
	var names []string
	for i := range list.Items {
		names = append(names, "nodemaintenance.ebbtide.dev/"+list.Items[i].Name)
	}
	if !o.forPrograms() {
		o.tellUnread(list.Unread)
	}
	if len(list.Items) == 0 && !o.forPrograms() {
		fmt.Fprintln(o.ErrOut, nothingThere(leftOut))
	}
	if len(list.Items)+len(list.Cordoned) == 0 && !o.forPrograms() {
		// There is nothing to print.
	} else if err := o.print(o.Out, list, strings.Join(names, "\n"), func(to io.Writer) error {
		return printStatusTable(to, &list, statusStyle{wide: o.wide(), leftOut: leftOut, tree: o.tree()})
	}); err != nil {
		return err
	}
	if away {
		return NotDone{NoManager: true}
	}
	return nil
}

func nothingThere(leftOut int) string {
	if leftOut == 0 {
		return "There is no NodeMaintenance"
	}
	return fmt.Sprintf("No NodeMaintenance is at work or planned, and %d complete; --all shows them", leftOut)
}

// tree is the command that shows one of them.
func (o *statusOptions) tree() string { return o.command("status NAME") }

func (o *statusOptions) tellUnread(lines []string) {
	for _, line := range lines {
		fmt.Fprintln(o.ErrOut, line)
	}
}

// one prints a maintenance and what is left of it.
func (o *statusOptions) one(ctx context.Context, reached client.Client, clock *clock) error {
	m := &v1alpha1.NodeMaintenance{}
	err := reached.Get(ctx, client.ObjectKey{Name: o.Name}, m)
	switch {
	case apierrors.IsNotFound(err):
		return o.noMaintenance(ctx, reached, o.Name)
	case err != nil:
		return fmt.Errorf("get nodemaintenance %s: %w", o.Name, err)
	}
	r := &reading{reached: reached}
	var away bool
	r.Unread, away = o.ofManager(ctx, reached, clock, o.ebbtide())
	r.Now = timeOf(clock)
	r.one(ctx, m)
	r.Now = timeOf(clock)
	status := view.One(&r.Snapshot)
	if !o.forPrograms() {
		o.tellUnread(status.Unread)
	}
	err = o.print(o.Out, status, "nodemaintenance.ebbtide.dev/"+status.Name, func(to io.Writer) error {
		return printStatus(to, &status, r.Now, statusStyle{wide: o.wide(), terminal: terminalOf(o.Out)})
	})
	if err == nil && (away || status.State == view.StateBlocked || status.State == view.StateInvalid) {
		return NotDone{NoManager: away}
	}
	return err
}
