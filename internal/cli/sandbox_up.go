//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/machine"
)

// maxNodes is how many nodes a sandbox starts with at most; more can be
// created with kubectl.
const maxNodes = 1000

type sandboxUpOptions struct {
	genericiooptions.IOStreams
	Version   string
	Dir       string
	Nodes     int
	RealNodes int
	// EvictionRequests has the API server serve them and the manager answer them.
	EvictionRequests bool

	background sandbox.Background
}

func newSandboxUp(streams genericiooptions.IOStreams) *cobra.Command {
	o := &sandboxUpOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster with the manager and leave it running",
		Long: `Start a cluster with the manager and leave it running.

Its nodes are simulated: what runs on them exists in the API only. With --real-nodes,
which needs Linux and root, each node has a kubelet, containerd and
kube-proxy in namespaces of its own, and pods are real processes. What is missing is
listed. "sandbox node off" cuts its power.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	addVersionFlag(cmd, &o.Version)
	addDirFlag(cmd, &o.Dir)
	cmd.Flags().IntVar(&o.Nodes, "nodes", 3, "number of simulated nodes")
	cmd.Flags().IntVar(&o.RealNodes, "real-nodes", 0, "number of real nodes, which take the place of simulated ones")
	cmd.Flags().BoolVar(&o.EvictionRequests, "eviction-requests", false, "serve EvictionRequests, an alpha API of Kubernetes 1.37, and have the manager answer them")
	cmd.MarkFlagsMutuallyExclusive("nodes", "real-nodes")
	return cmd
}

// Complete finds the folder.
func (o *sandboxUpOptions) Complete() (err error) {
	if o.background, err = background(o.Dir); err != nil {
		return err
	}
	o.background.Dir, err = filepath.Abs(o.background.Dir)
	return err
}

// Validate refuses what cannot be started.
func (o *sandboxUpOptions) Validate() error {
	if o.Nodes < 0 || o.Nodes > maxNodes {
		return fmt.Errorf("--nodes must be from 0 to %d, not %d", maxNodes, o.Nodes)
	}
	if o.RealNodes < 0 || o.RealNodes > machine.MaxNodes {
		return fmt.Errorf("--real-nodes must be from 0 to %d, not %d", machine.MaxNodes, o.RealNodes)
	}
	if o.RealNodes > 0 {
		if err := machine.Check(); err != nil {
			return err
		}
		o.Nodes = 0
	}
	if err := sandbox.CheckVersion(o.Version); err != nil {
		return err
	}
	if o.EvictionRequests {
		if err := sandbox.CheckEvictionRequests(o.Version); err != nil {
			return err
		}
	}
	return o.background.Check()
}

// Run builds what is missing and starts the cluster in the background.
func (o *sandboxUpOptions) Run(ctx context.Context) error {
	if o.background.Up() {
		return o.alreadyUp()
	}
	// Whoever has no kubectl gets the one of this release.
	_, err := exec.LookPath("kubectl")
	hasKubectl := err == nil
	binaries, err := sandbox.Build(ctx, sandbox.BuildSpec{Version: o.Version, Kubectl: !hasKubectl, Nodes: o.RealNodes > 0, Manager: true}, o.ErrOut)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.ErrOut, "starting Kubernetes %s with %d nodes and the manager\n", o.Version, o.Nodes+o.RealNodes)
	err = o.background.Start(ctx, "sandbox", keepVerb,
		"--dir", o.background.Dir, "--nodes", strconv.Itoa(o.Nodes), "--real-nodes", strconv.Itoa(o.RealNodes), "--kubernetes-version", o.Version,
		"--eviction-requests="+strconv.FormatBool(o.EvictionRequests))
	if errors.Is(err, sandbox.ErrUp) {
		return o.alreadyUp()
	}
	if err != nil {
		return err
	}
	path := ""
	if !hasKubectl {
		path = fmt.Sprintf("  export PATH=\"$PATH:%s\"  # kubectl, which was not in your PATH, has been built there\n", binaries.Dir)
	}
	fmt.Fprintf(o.Out, `The sandbox is up. Use it with
  export KUBECONFIG=%s
%s  kubectl get nodes
and end it with
  %s
`, command.Quote(o.background.Kubeconfig()), path, o.downCommand())
	return nil
}

func (o *sandboxUpOptions) alreadyUp() error {
	return fmt.Errorf("a sandbox is up already: KUBECONFIG=%s; end it with %q",
		command.Quote(o.background.Kubeconfig()), o.downCommand())
}

func (o *sandboxUpOptions) downCommand() string {
	if o.Dir == "" {
		return command.Of("%s sandbox down", commandName())
	}
	return command.Of("%s sandbox down --dir %s", commandName(), command.Quote(o.background.Dir))
}
