// Command sandbox runs a real control plane with simulated or real nodes on this machine. It is for
// demos, examples and tests. It works in a checkout of Ebbtide only, and no release contains it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/machine"
)

func main() {
	// A real node starts as this program, too.
	machine.Main(os.Args)
	// The logs of libraries are no part of a demo.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the program with these arguments and returns its exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(errOut, "interrupted")
		return 130 // as a shell reports a program that a signal has ended
	}
	fmt.Fprintln(errOut, "error:", err)
	return 1
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "Run a real control plane with simulated or real nodes on this machine",
		Long: `Run a real Kubernetes control plane on this machine, with simulated nodes. Its
nodes are real with "sandbox up --real-nodes".

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok run as
processes on 127.0.0.1, without a container runtime. They are built once from
their Go modules.

Environment:
  KUBERNETES=release  download and verify the official binaries of Kubernetes
  K8S_VERSION         version of Kubernetes, default ` + sandbox.DefaultVersion + `; one of
                      ` + strings.Join(sandbox.Versions(), ", "),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newBuild(), newUp(), newDown(), newNode(), newDemo(), newKeep())
	return root
}

// addDirFlag adds the flag for the folder of a cluster.
func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "folder for the files of the cluster (default .bin/cluster of the checkout)")
}
