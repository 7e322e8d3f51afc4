package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/uninstall"
)

// bridgeOptions is what bridge release is told.
type bridgeOptions struct {
	genericiooptions.IOStreams
	connection
	All, DryRun bool
}

func newBridge(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Let Machines of Cluster API and OpenShift go",
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
		Short: "Have Machines not wait for Ebbtide any more",
		Long: `Have Machines of Cluster API and OpenShift not wait for Ebbtide any more.

They wait at its hook when they are deleted, for as long as no manager of
Ebbtide runs. This takes the hook off, with your own rights and without the
manager; their controller goes on and drains by itself.

A manager that runs puts the hook on again, unless the Machine is being deleted
or label ebbtide.dev/drain does not ask for it any more.`,
		Example: `  # Two Machines
  kubectl ebbtide bridge release -n infra worker-1 worker-2

  # All Machines of all namespaces
  kubectl ebbtide bridge release --all`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.Run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&o.All, "all", false, "all Machines of all namespaces")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only tell which they are")
	o.addFlags(cmd)
	return cmd
}

// Run takes the hooks off.
func (o *bridgeOptions) Run(ctx context.Context, names []string) error {
	if o.All == (len(names) > 0) {
		return errors.New("name Machines, or add --all, and not both")
	}
	reached, _, namespace, err := o.reachWarned(o.ErrOut)
	if err != nil {
		return err
	}
	if o.All {
		namespace = ""
	}
	hooks := uninstall.Hooks{Client: reached, Namespace: namespace, Names: names, DryRun: o.DryRun, Out: o.Out}
	count, err := hooks.Run(ctx)
	if count == 0 && err == nil {
		fmt.Fprintln(o.Out, "No Machine has the hook of Ebbtide")
	}
	return err
}
