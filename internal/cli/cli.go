// Package cli is the kubectl plugin: one file per verb, each with options that
// are completed from flags and environment, validated, and then run.
//
// Results go to standard output, progress and errors to standard error. Every
// error says what to do or which value is wrong. Exit codes: 0 done, 1 error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/version"
)

// Run runs the plugin with these arguments and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := newRoot(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(streams.ErrOut, "interrupted")
	default:
		fmt.Fprintln(streams.ErrOut, "error:", err)
	}
	return 1
}

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-ebbtide",
		Short: "Empty Kubernetes nodes on purpose and bring them back",
		// kubectl shows the plugin as a command of its own.
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl ebbtide"},
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       version.Number(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate(version.Line("kubectl-ebbtide") + "\n")
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddCommand(newLock(streams), newUnlock(streams), newRelease(streams), newAgents(streams), newWhy(streams), newSandbox(streams), newVersion())
	return root
}

// commandName is how the user calls the plugin: through kubectl where it is
// installed, otherwise from the checkout.
func commandName() string {
	if _, err := exec.LookPath("kubectl-ebbtide"); err == nil {
		return "kubectl ebbtide"
	}
	return "go run ./cmd/kubectl-ebbtide"
}
