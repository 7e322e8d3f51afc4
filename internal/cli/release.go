package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/uninstall"
)

// releaseOptions is what release is told.
type releaseOptions struct {
	genericiooptions.IOStreams
	connection
	Yes, Force, Machines bool
}

func newRelease(streams genericiooptions.IOStreams) *cobra.Command {
	o := &releaseOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Remove everything that a manager has left which is gone",
		Long: `Remove everything that a manager has left which is gone.

Nodes become what they were before their maintenance. Finalizers, scheduling
gates, taints, conditions, locks and annotations of Ebbtide go. Detached pods go
back to their ReplicaSets. NodeMaintenances that had begun are Complete, planned
ones stay. Machines of Cluster API and OpenShift do not wait for Ebbtide any
more. No pod is evicted or deleted. Our webhook configurations go first: while
nobody answers them, what they guard cannot be written.

Without --yes it only tells what it would do. It asks for nothing but your own
rights, tells what you may not do, and does the rest.

While a manager runs it does all of this itself, at the end of each maintenance
or by helm uninstall; then this command is refused.`,
		Example: `  # What would be done?
  kubectl ebbtide release

  # Do it
  kubectl ebbtide release --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Yes, "yes", false, "do it")
	flags.BoolVar(&o.Force, "force", false, "do it although a manager leads, or nobody knows whether one does; it may do again what is undone")
	flags.BoolVar(&o.Machines, "machines", false, "let go of Machines and Clusters too: from then on nobody drains their nodes when they are deleted")
	o.addFlags(cmd)
	return cmd
}

// Run tells what would be removed, or removes it.
func (o *releaseOptions) Run(ctx context.Context) error {
	// Our policies warn of each node that is uncordoned, which is what is asked for here.
	reached, clock, _, err := o.reach()
	if err != nil {
		return err
	}
	return uninstall.Releaser{
		Client: reached, Yes: o.Yes, Force: o.Force, Machines: o.Machines, Out: o.Out,
		Now:   func() time.Time { return timeOf(clock) },
		Again: o.command("release"),
	}.Run(ctx)
}
