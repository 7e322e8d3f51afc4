// Package cluster gives tests a real Kubernetes: etcd, kube-apiserver,
// kube-controller-manager and scheduler, with nodes that kwok plays.
//
// There is one control plane per test process and Spec; tests share it and run
// in parallel, each with nodes and namespaces of its own. Pods of a namespace
// stay on the nodes of the same test. Everything that a test makes through this
// package is gone when it ends, and nothing outlives the process, even when it
// is killed. Binaries that are missing are built first.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { cluster.Main(m) }
package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// startWithin bounds the start of a control plane whose binaries are there.
const startWithin = 3 * time.Minute

// Spec is the kind of cluster that a test needs. Tests that ask for the same
// share one.
type Spec struct {
	// Nodes is how many nodes the test gets, in Cluster.Nodes.
	Nodes int
	// OnlyAPIServer leaves everything out but etcd and kube-apiserver. There are
	// no controllers: no nodes, no garbage collection, no namespace deletion.
	OnlyAPIServer bool
	// Audit has the API server log every write to Cluster.AuditLog.
	Audit bool
}

// Cluster is one test's view of a running control plane.
type Cluster struct {
	client.Client
	// Config is the administrator's, without client-side limits.
	Config *rest.Config
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// AuditLog is the path of the audit log, if the Spec asked for it.
	AuditLog string
	// Nodes are the names of the nodes that the Spec asked for.
	Nodes []string

	sandbox *sandbox.Cluster
	prefix  string
	created counter
}

// Main runs the tests of a package and then ends what they started.
func Main(m *testing.M) {
	shared.mu.Lock()
	shared.main = true
	shared.mu.Unlock()
	code := m.Run()
	for _, c := range shared.clusters {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop cluster:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// shared are the control planes of this process.
var shared = struct {
	mu       sync.Mutex
	main     bool
	clusters map[key]*sandbox.Cluster
	prefixes int
}{clusters: map[key]*sandbox.Cluster{}}

// key is what tells control planes apart.
type key struct{ onlyAPIServer, audit bool }

// Start returns a control plane with our CRDs installed.
func Start(t testing.TB, spec Spec) *Cluster {
	t.Helper()
	running, number, err := start(spec)
	if err != nil {
		t.Fatalf("start cluster: %v", err)
	}
	c := &Cluster{
		Client:     running.Client,
		Config:     running.Config,
		Kubeconfig: running.Kubeconfig,
		AuditLog:   running.AuditLog,
		sandbox:    running,
		prefix:     fmt.Sprintf("%s-%d", slug(t.Name()), number),
	}
	if spec.Nodes > 0 {
		c.Nodes = c.AddNodes(t, spec.Nodes)
	}
	return c
}

func start(spec Spec) (*sandbox.Cluster, int, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.main {
		return nil, 0, fmt.Errorf("the package needs func TestMain(m *testing.M) { cluster.Main(m) }")
	}
	shared.prefixes++
	k := key{spec.OnlyAPIServer, spec.Audit}
	if c, ok := shared.clusters[k]; ok {
		return c, shared.prefixes, nil
	}
	// Building has no bound of ours: go test has one.
	binaries, err := sandbox.Build(context.Background(), sandbox.BuildSpec{}, os.Stderr)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	c, err := sandbox.Start(ctx, binaries, sandbox.Spec{OnlyAPIServer: spec.OnlyAPIServer, Audit: spec.Audit})
	if err != nil {
		return nil, 0, err
	}
	shared.clusters[k] = c
	return c, shared.prefixes, c.InstallCRDs(ctx)
}

// StartManager starts the controller manager as a process under its own
// identity, and ends it with the test. Its log is shown when the test fails.
// It acts on the whole cluster, so tests that run it do not run in parallel
// with each other unless they share it.
func (c *Cluster) StartManager(t testing.TB, args ...string) *sandbox.Manager {
	t.Helper()
	m, err := c.sandbox.StartManager(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Stop()
		if t.Failed() {
			t.Logf("the end of the manager's log:\n%s", m.Tail(200))
		}
	})
	return m
}
