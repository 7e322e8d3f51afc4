package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

func newBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build missing binaries, kubectl among them, and print their folder",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			binaries, err := sandbox.Build(cmd.Context(), sandbox.BuildSpec{Kubectl: true}, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), binaries.Dir)
			return nil
		},
	}
}
