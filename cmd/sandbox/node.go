package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

func newNode() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "node off|on NAME",
		Short: "Cut the power of a real node, or boot it",
		Long: `Cut the power of a real node, or boot it. If the power is cut, everything on the
node ends at once. When the node boots, its disk is unchanged.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			position, node := sandbox.Switch(args[0]), args[1]
			if position != sandbox.Off && position != sandbox.On {
				return fmt.Errorf("the power of a node is %s or %s, not %q", sandbox.Off, sandbox.On, args[0])
			}
			background, err := sandbox.BackgroundIn(dir)
			if err != nil {
				return err
			}
			if err := background.Power(cmd.Context(), node, position); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Node %s is %s.\n", node, position)
			return nil
		},
	}
	addDirFlag(cmd, &dir)
	return cmd
}
