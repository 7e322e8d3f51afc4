package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func newWatch(streams genericiooptions.IOStreams) *cobra.Command {
	c := &connection{}
	f := &following{IOStreams: streams, connection: c}
	lines := false
	cmd := &cobra.Command{
		Use:   "watch [NAME|NODE...]",
		Short: "Watch maintenances until their nodes are drained",
		Long: `Watch maintenances until their nodes are drained, or the maintenances complete.

On a terminal, a live view shows the nodes, the pods that are left and the
blockers; enter explains them. Otherwise, with --lines or TERM=dumb, each change
is printed as a line with the time of the cluster. Without a name, all active
maintenances are watched. A node stands for the maintenances that hold it.
Leaving the command does not stop the drains.

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
			if f.subjects, err = subjectsOf(args, kindAny, kindMaintenance, kindNode); err != nil {
				return err
			}
			f.Live = !lines
			return f.follow(cmd.Context())
		},
	}
	cmd.Flags().DurationVar(&f.Timeout, "timeout", 0, "time to wait; 0 waits forever")
	cmd.Flags().BoolVar(&lines, "lines", false, "print lines instead of the live view")
	c.addFlags(cmd)
	cmd.ValidArgsFunction = c.suggest(suggestMaintenances)
	return cmd
}
