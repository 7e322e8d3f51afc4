// Package lab runs the contenders of the benchmark: one real control plane with kwok nodes,
// fresh work for every run, and a clock outside of what is measured. A run starts when a warm
// contender is told to drain, and ends when the lab's own watch sees the last pod go. Contenders
// run as processes, one at a time.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/bench/audit"
)

// Agent is the lab's own name in the audit log.
const Agent = "bench"

// Lab is a control plane and the contenders' binaries.
type Lab struct {
	// Client is the administrator's, without client-side limits.
	Client client.WithWatch
	// Audit is the API server's audit log.
	Audit *audit.Log
	// Version of Kubernetes.
	Version string

	cluster *sandbox.Cluster
	bin     string
	logs    string
	loads   int
}

// Open builds the contenders of these names and what the control plane lacks
// below root, the repository's folder, and starts the control plane. It says on
// progress what it is doing.
func Open(ctx context.Context, root string, names []string, progress io.Writer) (*Lab, error) {
	bin, err := filepath.Abs(filepath.Join(root, ".bin", "bench"))
	if err != nil {
		return nil, fmt.Errorf("find folder for binaries: %w", err)
	}
	l := &Lab{bin: bin, logs: filepath.Join(bin, "log")}
	if err := os.MkdirAll(l.logs, 0o755); err != nil {
		return nil, fmt.Errorf("make log folder: %w", err)
	}
	if err := l.build(ctx, root, names, progress); err != nil {
		return nil, err
	}
	binaries, err := sandbox.Build(ctx, sandbox.BuildSpec{Version: os.Getenv("K8S_VERSION")}, progress)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "starting the control plane")
	if l.cluster, err = sandbox.Start(ctx, binaries, sandbox.Spec{Audit: sandbox.AuditWrites}); err != nil {
		return nil, err
	}
	l.Version = binaries.Version
	if err := l.connect(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) connect() error {
	config := rest.CopyConfig(l.cluster.Config)
	config.UserAgent = Agent
	scheme, err := sandbox.Scheme()
	if err != nil {
		return fmt.Errorf("make scheme: %w", err)
	}
	if l.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	l.Audit, err = audit.Open(l.cluster.AuditLog)
	return err
}

// Close ends the control plane.
func (l *Lab) Close() error {
	if l.Audit == nil {
		return l.cluster.Stop()
	}
	return errors.Join(l.Audit.Close(), l.cluster.Stop())
}
