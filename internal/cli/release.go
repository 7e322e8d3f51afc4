package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/uninstall"
)

// releaseOptions are the options of release.
type releaseOptions struct {
	genericiooptions.IOStreams
	connection
	Yes, Force, Machines bool
}

func newRelease(streams genericiooptions.IOStreams) *cobra.Command {
	o := &releaseOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Clean up after a manager that is gone",
		Long: `Clean up after a manager that is gone.

The command restores nodes to their state before the maintenance, and removes
Ebbtide's finalizers, scheduling gates, taints, conditions, locks and
annotations. Detached pods return to their ReplicaSets. Started NodeMaintenances
become Complete; planned ones stay. Machines of Cluster API and OpenShift no
longer wait for Ebbtide. No pod is evicted or deleted. Ebbtide's webhook
configurations are removed first, as nothing serves them.

Without --yes, the command only lists the changes. It uses your own rights,
reports what you may not change, and continues with the rest.

A running manager does all of this at the end of each maintenance and during
helm uninstall, so the command is refused while one leads.`,
		Example: `  # List the changes
  kubectl ebbtide release

  # Make the changes
  kubectl ebbtide release --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Yes, "yes", false, "make the changes")
	flags.BoolVar(&o.Force, "force", false, "proceed although a manager leads, which may redo the changes")
	flags.BoolVar(&o.Machines, "machines", false, "also release Ebbtide's Machines and Clusters, whose nodes are then deleted without a drain")
	o.addFlags(cmd)
	return cmd
}

// Run makes or lists the changes.
func (o *releaseOptions) Run(ctx context.Context) error {
	// Our policies warn of each node that is uncordoned, which is intended here.
	reached, clock, _, err := o.reach(io.Discard)
	if err != nil {
		return err
	}
	return uninstall.Releaser{
		Client: reached, Yes: o.Yes, Force: o.Force, Machines: o.Machines, Out: o.Out,
		Now:   func() time.Time { return timeOf(clock) },
		Again: o.command("release"),
	}.Run(ctx)
}

// bridgeOptions are the options of bridge release.
type bridgeOptions struct {
	genericiooptions.IOStreams
	connection
	All, DryRun bool
}

func newBridge(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Manage Machines of Cluster API and OpenShift",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBridgeRelease(streams))
	return cmd
}

func newBridgeRelease(streams genericiooptions.IOStreams) *cobra.Command {
	o := &bridgeOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "release [NAME ...]",
		Short: "Remove Ebbtide's hook from Machines",
		Long: `Remove Ebbtide's hook from Machines of Cluster API and OpenShift.

A deleted Machine waits at this hook while no manager is running. The command
removes the hook with your own rights, and the Machine's controller then drains
the node itself.

A running manager adds the hook again, unless the Machine is being deleted or no
longer selected by the label ebbtide.dev/drain.`,
		Example: `  # Release two Machines
  kubectl ebbtide bridge release -n infra worker-1 worker-2

  # Release all Machines in all namespaces
  kubectl ebbtide bridge release --all`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.Run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&o.All, "all", false, "select all Machines in all namespaces")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only list the Machines")
	o.addFlags(cmd)
	return cmd
}

// Run removes the hooks.
func (o *bridgeOptions) Run(ctx context.Context, names []string) error {
	if o.All == (len(names) > 0) {
		return errors.New("specify Machine names or --all, not both")
	}
	reached, _, namespace, err := o.reach(o.ErrOut)
	if err != nil {
		return err
	}
	if o.All {
		namespace = ""
	}
	hooks := uninstall.Hooks{Client: reached, Namespace: namespace, Names: names, DryRun: o.DryRun, Out: o.Out}
	count, err := hooks.Run(ctx)
	if count == 0 && err == nil {
		fmt.Fprintln(o.Out, "No Machine has Ebbtide's hook")
	}
	return err
}
