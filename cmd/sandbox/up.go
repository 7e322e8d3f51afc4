package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"

	"github.com/spf13/cobra"

	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/machine"
)

// maxNodes is the most nodes that a sandbox starts with. More can be created with kubectl.
const maxNodes = 1000

// options returns the options of the cluster.
type options struct {
	dir              string
	nodes, realNodes int
	evictionRequests bool
}

func newUp() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster with the manager and leave it running",
		Long: `Start a cluster with the manager and leave it running.

Pods on simulated nodes exist in the API only. With --real-nodes, each node has a
kubelet, containerd and kube-proxy in namespaces of its own, and pods are real
processes. This requires Linux and root; missing requirements are listed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.up(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("nodes", "real-nodes")
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	addDirFlag(cmd, &o.dir)
	cmd.Flags().IntVar(&o.nodes, "nodes", 3, "number of simulated nodes")
	cmd.Flags().IntVar(&o.realNodes, "real-nodes", 0, "number of real nodes, instead of simulated ones")
	cmd.Flags().BoolVar(&o.evictionRequests, "eviction-requests", false, "serve EvictionRequests, an alpha API of Kubernetes 1.37, and answer them")
}

// check refuses a cluster that cannot be started.
func (o *options) check() error {
	if o.nodes < 0 || o.nodes > maxNodes {
		return fmt.Errorf("--nodes must be from 0 to %d, not %d", maxNodes, o.nodes)
	}
	if o.realNodes < 0 || o.realNodes > machine.MaxNodes {
		return fmt.Errorf("--real-nodes must be from 0 to %d, not %d", machine.MaxNodes, o.realNodes)
	}
	if o.realNodes > 0 {
		if err := machine.Check(); err != nil {
			return err
		}
		o.nodes = 0
	}
	if o.evictionRequests {
		return sandbox.CheckEvictionRequests(sandbox.RequestedVersion())
	}
	return nil
}

// up builds missing binaries and starts the cluster in the background.
func (o *options) up(ctx context.Context, out, progress io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	background, err := sandbox.BackgroundIn(o.dir)
	if err != nil {
		return err
	}
	if err := background.Check(); err != nil {
		return err
	}
	if background.Up() {
		return o.isUp(background)
	}
	_, noKubectl := exec.LookPath("kubectl")
	binaries, err := sandbox.Build(ctx, sandbox.BuildSpec{Kubectl: noKubectl != nil, Nodes: o.realNodes > 0, Manager: true}, progress)
	if err != nil {
		return err
	}
	if err := o.start(ctx, background, progress); err != nil {
		return err
	}
	path := ""
	if noKubectl != nil {
		path = fmt.Sprintf("  export PATH=\"$PATH:%s\"  # kubectl, which was not in your PATH, has been built there\n", binaries.Dir)
	}
	fmt.Fprintf(out, "The sandbox is up. Use it with\n  export KUBECONFIG=%s\n%s  kubectl get nodes\nand end it with\n  %s\n",
		command.Quote(background.Kubeconfig()), path, o.downCommand(background))
	return nil
}

// start starts the process that keeps the cluster up.
func (o *options) start(ctx context.Context, background sandbox.Background, progress io.Writer) error {
	fmt.Fprintf(progress, "starting Kubernetes %s with %d nodes and the manager\n", sandbox.RequestedVersion(), o.nodes+o.realNodes)
	err := background.Start(ctx, "keep", "--dir", background.Dir, "--nodes", strconv.Itoa(o.nodes),
		"--real-nodes", strconv.Itoa(o.realNodes), "--eviction-requests="+strconv.FormatBool(o.evictionRequests))
	if errors.Is(err, sandbox.ErrUp) {
		return o.isUp(background)
	}
	return err
}

func (o *options) isUp(background sandbox.Background) error {
	return fmt.Errorf("a sandbox is up already: KUBECONFIG=%s; end it with %q",
		command.Quote(background.Kubeconfig()), o.downCommand(background))
}

func (o *options) downCommand(background sandbox.Background) string {
	if o.dir == "" {
		return "make sandbox-down"
	}
	return command.Of("go run ./cmd/sandbox down --dir %s", command.Quote(background.Dir))
}
