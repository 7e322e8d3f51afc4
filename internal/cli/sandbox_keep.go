//go:build unix

package cli

import (
	"context"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/provider"
)

const keepVerb = "keep"

type sandboxKeepOptions struct {
	Version   string
	Dir       string
	Nodes     int
	RealNodes int
	// EvictionRequests is that of sandboxUpOptions.
	EvictionRequests bool
}

// newSandboxKeep is the process that `sandbox up` leaves behind. People do not
// start it.
func newSandboxKeep() *cobra.Command {
	o := &sandboxKeepOptions{}
	cmd := &cobra.Command{
		Use:    keepVerb,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context()) },
	}
	addVersionFlag(cmd, &o.Version)
	addDirFlag(cmd, &o.Dir)
	cmd.Flags().IntVar(&o.Nodes, "nodes", 0, "")
	cmd.Flags().IntVar(&o.RealNodes, "real-nodes", 0, "")
	cmd.Flags().BoolVar(&o.EvictionRequests, "eviction-requests", false, "")
	return cmd
}

// Run keeps the cluster up until it is told to end.
func (o *sandboxKeepOptions) Run(ctx context.Context) error {
	return sandbox.Background{Dir: o.Dir}.Keep(ctx, func(ctx context.Context) (*sandbox.Cluster, error) {
		binaries, err := sandbox.Build(ctx, sandbox.BuildSpec{Version: o.Version, Nodes: o.RealNodes > 0}, os.Stderr)
		if err != nil {
			return nil, err
		}
		c, err := sandbox.Start(ctx, binaries, sandbox.Spec{Dir: o.Dir, Nodes: o.Nodes, RealNodes: o.RealNodes, EvictionRequests: o.EvictionRequests})
		if err != nil {
			return nil, err
		}
		if _, err = c.StartManager(ctx); err == nil && o.RealNodes == 0 {
			go provide(ctx, c)
		}
		return c, err
	})
}

// provide makes nodes of SandboxMachines until the sandbox ends.
func provide(ctx context.Context, c *sandbox.Cluster) {
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	if err := provider.Run(ctx, c.Config, logger); err != nil {
		logger.Error(err, "The provider has stopped")
	}
}
