package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/demo"
)

type sandboxDemoOptions struct {
	genericiooptions.IOStreams
	Version string
}

func newSandboxDemo(streams genericiooptions.IOStreams) *cobra.Command {
	o := &sandboxDemoOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a node being drained, in a cluster that is gone afterwards",
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

// Run shows the demo.
func (o *sandboxDemoOptions) Run(ctx context.Context) error {
	err := demo.Demo{Version: o.Version, Out: o.Out, Progress: o.ErrOut, Colour: colour(o.Out)}.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, `
Read on  README.md, docs/layout.md
Play     %s sandbox up
`, commandName())
	return nil
}

// colour says whether an output shows colours: a terminal does, unless its
// user prefers none (no-color.org).
func colour(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
}
