package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func newWatch(streams genericiooptions.IOStreams) *cobra.Command {
	c := &connection{}
	f := &following{IOStreams: streams, connection: c}
	lines := false
	cmd := &cobra.Command{
		Use:   "watch [NAME|NODE...] | noderollout/NAME",
		Short: "Watch maintenances until their nodes are drained",
		Long: `Watch maintenances until their nodes are drained, or the maintenances complete.

On a terminal, a live view shows the nodes, the pods that are left and the
blockers; enter explains them. Otherwise, with --lines or TERM=dumb, each change
is printed as a line with the time of the cluster. Without a name, all active
maintenances are watched. A node stands for the maintenances that hold it.
noderollout/NAME is a rollout, as in "rollout watch". Leaving the command does
not stop the drains.

The exit code is 0 if all are drained or complete, and 2 if they are not at
--timeout or when you leave. Requires the verbs list and watch on
nodemaintenances.`,
		Example: `  # Watch all active maintenances
  kubectl ebbtide watch

  # Wait at most one hour for a maintenance
  kubectl ebbtide watch kernel-update --timeout=1h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Timeout < 0 {
				return errors.New("--timeout must not be negative")
			}
			var err error
			if f.subjects, err = subjectsOf(args, kindAny, kindMaintenance, kindNode, kindRollout); err != nil {
				return err
			}
			isRollout := slices.ContainsFunc(f.subjects, func(s subject) bool { return s.kind == kindRollout })
			switch {
			case isRollout && len(f.subjects) > 1:
				return errors.New("specify one NodeRollout, or maintenances and nodes")
			case isRollout:
				return f.rollout(cmd.Context())
			}
			f.Live = !lines
			return f.follow(cmd.Context())
		},
	}
	cmd.Flags().DurationVar(&f.Timeout, "timeout", 0, "time to wait; 0 waits forever")
	cmd.Flags().BoolVar(&lines, "lines", false, "print lines instead of the live view")
	c.addFlags(cmd)
	cmd.ValidArgsFunction = c.suggest(suggestMaintenances, suggestRollouts.under("noderollout/"))
	return cmd
}

// rollout follows the only subject, a rollout.
func (f *following) rollout(ctx context.Context) error {
	o := &rolloutOptions{IOStreams: f.IOStreams, connection: *f.connection}
	if err := o.open(); err != nil {
		return err
	}
	return o.follow(ctx, f.subjects[0].name, f.Timeout)
}
