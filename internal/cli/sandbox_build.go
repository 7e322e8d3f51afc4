//go:build unix

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

type sandboxBuildOptions struct {
	genericiooptions.IOStreams
	Version string
	Kubectl bool
	Nodes   bool
}

func newSandboxBuild(streams genericiooptions.IOStreams) *cobra.Command {
	o := &sandboxBuildOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build what is missing and print where it is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	addVersionFlag(cmd, &o.Version)
	cmd.Flags().BoolVar(&o.Kubectl, "kubectl", false, "build kubectl, too")
	cmd.Flags().BoolVar(&o.Nodes, "nodes", false, "build what real nodes run, too: kubelet, kube-proxy, containerd, network plugins")
	return cmd
}

// Validate refuses a version that cannot be built.
func (o *sandboxBuildOptions) Validate() error { return sandbox.CheckVersion(o.Version) }

// Run builds.
func (o *sandboxBuildOptions) Run(ctx context.Context) error {
	binaries, err := sandbox.Build(ctx, sandbox.BuildSpec{Version: o.Version, Kubectl: o.Kubectl, Nodes: o.Nodes}, o.ErrOut)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.Out, binaries.Dir)
	return nil
}
