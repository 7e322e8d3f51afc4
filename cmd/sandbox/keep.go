package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/provider"
)

// newKeep is the process that "sandbox up" leaves running. Users do not start it.
func newKeep() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:    "keep",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return o.keep(cmd.Context()) },
	}
	o.addFlags(cmd)
	return cmd
}

// keep keeps the cluster up until the context ends.
func (o *options) keep(ctx context.Context) error {
	return sandbox.Background{Dir: o.dir}.Keep(ctx, func(ctx context.Context) (*sandbox.Cluster, error) {
		binaries, err := sandbox.Build(ctx, sandbox.BuildSpec{Nodes: o.realNodes > 0}, os.Stderr)
		if err != nil {
			return nil, err
		}
		c, err := sandbox.Start(ctx, binaries, sandbox.Spec{Dir: o.dir, Nodes: o.nodes, RealNodes: o.realNodes, EvictionRequests: o.evictionRequests})
		if err != nil {
			return nil, err
		}
		if _, err = c.StartManager(ctx); err == nil && o.realNodes == 0 {
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
