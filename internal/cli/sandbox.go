//go:build unix

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

func newSandbox(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Run a real control plane with simulated or real nodes, here",
		Long: `A real Kubernetes control plane with simulated nodes, on this machine. Where
it is asked for, the nodes are real: see "sandbox up --help".

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok are built
from their Go modules, once, and run as processes on 127.0.0.1. No container
runtime is needed; nothing but Go 1.26 is. With KUBERNETES=release in the
environment, the official programs of Kubernetes are downloaded and verified
instead of being built.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newSandboxBuild(streams),
		newSandboxUp(streams),
		newSandboxDown(streams),
		newSandboxNode(streams),
		newSandboxDemo(streams),
		newSandboxKeep(),
	)
	return cmd
}

// addVersionFlag adds the flag that every verb has which may build.
func addVersionFlag(cmd *cobra.Command, version *string) {
	cmd.Flags().StringVar(version, "kubernetes-version", sandbox.RequestedVersion(),
		"Kubernetes version, one of "+strings.Join(sandbox.Versions(), ", "))
}

// addDirFlag adds the flag for the folder of a sandbox in the background.
func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "folder for the sandbox's files (default: .bin/sandbox of the checkout, or the user's cache)")
}

// background returns the sandbox in dir, or in the default folder.
func background(dir string) (sandbox.Background, error) {
	if dir != "" {
		return sandbox.Background{Dir: dir}, nil
	}
	dir, err := sandbox.DefaultBackgroundDir()
	if err != nil {
		return sandbox.Background{}, fmt.Errorf("%w; choose one with --dir", err)
	}
	return sandbox.Background{Dir: dir}, nil
}
