package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

func newDown() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove its files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			background, err := sandbox.BackgroundIn(dir)
			if err != nil {
				return err
			}
			was, err := background.Stop(cmd.Context())
			if err != nil {
				return err
			}
			text := "The sandbox is down."
			if !was {
				text = "No sandbox is up in " + background.Dir + "."
			}
			fmt.Fprintln(cmd.OutOrStdout(), text)
			return nil
		},
	}
	addDirFlag(cmd, &dir)
	return cmd
}
