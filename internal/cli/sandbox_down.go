//go:build unix

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

type sandboxDownOptions struct {
	genericiooptions.IOStreams
	Dir string

	background sandbox.Background
}

func newSandboxDown(streams genericiooptions.IOStreams) *cobra.Command {
	o := &sandboxDownOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove its files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	addDirFlag(cmd, &o.Dir)
	return cmd
}

// Complete finds the folder.
func (o *sandboxDownOptions) Complete() (err error) {
	o.background, err = background(o.Dir)
	return err
}

// Run ends the cluster; that there is none is fine.
func (o *sandboxDownOptions) Run(ctx context.Context) error {
	was, err := o.background.Stop(ctx)
	if err != nil {
		return err
	}
	if was {
		fmt.Fprintln(o.Out, "The sandbox is down.")
	} else {
		fmt.Fprintln(o.Out, "No sandbox is up in "+o.background.Dir+".")
	}
	return nil
}
