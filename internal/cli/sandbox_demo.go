//go:build unix

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/demo"
)

type sandboxDemoOptions struct {
	genericiooptions.IOStreams
	Version string
	// show is the demo, readOn where its user goes from there.
	show   func(demo.Demo, context.Context) error
	readOn string
}

func newSandboxDemo(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := newDemo(&sandboxDemoOptions{
		IOStreams: streams, show: demo.Demo.Run, readOn: "README.md, docs/layout.md",
	}, "demo", "Show a node being drained, in a cluster that is gone afterwards")
	cmd.AddCommand(newDemo(&sandboxDemoOptions{
		IOStreams: streams, show: demo.Demo.RunMachines, readOn: "examples/machines/README.md, docs/design/0006-machines.md",
	}, "machines", "Show Machines from their creation to the end of one of them"))
	cmd.AddCommand(newDemo(&sandboxDemoOptions{
		IOStreams: streams, show: demo.Demo.RunNodes, readOn: "docs/static-pods.md, docs/shutdown.md",
	}, "node", "Show a static pod leave a real node, and return (Linux, root)"))
	cmd.AddCommand(newDemo(&sandboxDemoOptions{
		IOStreams: streams, show: demo.Demo.RunEvictionRequests, readOn: "docs/evictionrequests.md, examples/responder/README.md",
	}, "eviction-request", "Show a pod that has a say in its own eviction"))
	return cmd
}

func newDemo(o *sandboxDemoOptions, use, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	addVersionFlag(cmd, &o.Version)
	return cmd
}

// Validate refuses a version that cannot be built.
func (o *sandboxDemoOptions) Validate() error { return sandbox.CheckVersion(o.Version) }

// Run shows the demo and says how to go on.
func (o *sandboxDemoOptions) Run(ctx context.Context) error {
	d := demo.Demo{Version: o.Version, Out: o.Out, Progress: o.ErrOut, Colour: terminalOf(o.Out).coloured}
	if err := o.show(d, ctx); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, `
Read on  %s
Play     %s sandbox up
`, o.readOn, commandName())
	return nil
}
