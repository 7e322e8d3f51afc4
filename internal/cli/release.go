package cli

import (
	"context"
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
