//go:build unix

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

type sandboxNodeOptions struct {
	genericiooptions.IOStreams
	Dir    string
	Switch sandbox.Switch

	background sandbox.Background
}

func newSandboxNode(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Cut the power of a real node, or boot it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newSandboxNodeSwitch(streams, sandbox.Off, "Cut the power of a real node: everything on it ends at once"),
		newSandboxNodeSwitch(streams, sandbox.On, "Boot a real node whose power is off; its disk is as it was"),
	)
	return cmd
}

func newSandboxNodeSwitch(streams genericiooptions.IOStreams, s sandbox.Switch, short string) *cobra.Command {
	o := &sandboxNodeOptions{IOStreams: streams, Switch: s}
	cmd := &cobra.Command{
		Use:   string(s) + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context(), args[0])
		},
	}
	addDirFlag(cmd, &o.Dir)
	return cmd
}

// Complete finds the folder.
func (o *sandboxNodeOptions) Complete() (err error) {
	o.background, err = background(o.Dir)
	return err
}

// Run switches the node.
func (o *sandboxNodeOptions) Run(ctx context.Context, node string) error {
	if err := o.background.Power(ctx, node, o.Switch); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Node %s is %s.\n", node, o.Switch)
	return nil
}
