package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/uninstall"
)

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
