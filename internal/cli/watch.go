package cli

import (
	"errors"
	"time"

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
		Long: `Watch maintenances until their nodes are drained, or until they are complete.

On a terminal it is one picture: nodes, what has left them since you look, what
is left, and who blocks; enter tells why. Elsewhere, with --lines or TERM=dumb,
a line is printed for each change, with the time of the cluster. Without a name,
all that is at work is watched. The name of a node means the maintenances that
hold it. Ending it leaves the drains running.

Exit code 0 if all that is watched is drained or complete, 2 if it is not at
--timeout or when you leave. You need the verbs list and watch on
nodemaintenances.`,
		Example: `  # What is going on?
  kubectl ebbtide watch

  # Wait for one maintenance, for an hour at the most
  kubectl ebbtide watch kernel-update --timeout=1h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Timeout < 0 {
				return errors.New("--timeout is how long to watch, such as 30m; 0 is as long as it takes")
			}
			var err error
			if f.Names, err = maintenanceNames(args); err != nil {
				return err
			}
			f.Live = !lines
			return f.follow(cmd.Context())
		},
	}
	cmd.Flags().DurationVar(&f.Timeout, "timeout", 0*time.Second, "how long to watch, such as 30m; 0 is as long as it takes")
	cmd.Flags().BoolVar(&lines, "lines", false, "print lines on a terminal, too")
	c.addFlags(cmd)
	cmd.ValidArgsFunction = c.suggest(suggestMaintenances)
	return cmd
}
