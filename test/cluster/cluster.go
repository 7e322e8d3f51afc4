// Package cluster gives tests a real control plane, with kwok nodes or real ones. There is one
// for each test process and Spec. Tests share it, run in parallel, and have their own nodes and
// namespaces. Everything is removed at the end of a test, and nothing outlives the process. A
// package that uses it has
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/machine"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// Spec is the kind of cluster that a test needs. Tests that ask for the same
// share one.
type Spec struct {
	// Nodes is how many nodes the test gets, in Cluster.Nodes.
	Nodes int
	// RealNodes is how many nodes with a kubelet the control plane has, in Cluster.Nodes.
	// They need Linux and root. Tests share them, whatever is done to their power, so
	// they do not run in parallel. No nodes are played by kwok. What stands between the API
	// server and managers here (Replicas, Tapped) is out of reach of their network.
	RealNodes int
	// OnlyAPIServer leaves everything out but etcd and kube-apiserver. There are
	// no controllers: no nodes, no garbage collection, no namespace deletion.
	OnlyAPIServer bool
	// OnlyWebhooks has the chart as for Kubernetes before 1.36, which serves no
	// MutatingAdmissionPolicies.
	OnlyWebhooks bool
	// Audit has the API server log every write to Cluster.AuditLog.
	Audit bool
	// NoManager is for a test of Kubernetes alone: no other test of this control
	// plane starts the manager.
	NoManager bool
	// Workload is a cluster that Ebbtide is not in: it has none of our kinds, and
	// no test starts the manager. Machines of another cluster have their nodes there.
	Workload bool
	// Replicas is for tests of several managers of which one leads: each starts its own,
	// and nobody the one that others share.
	Replicas bool
	// NoMachines has the manager run without the rights and the flag for Machines.
	NoMachines bool
	// Bridges are names for the manager's flag --bridge, separated by commas. It has the
	// rights for these.
	Bridges string
	// JobNamespaces are names of namespaces, separated by commas, where rollouts may run Jobs. They
	// exist.
	JobNamespaces string
	// Lacks is the name of bindings of the chart that are not there, so that the manager has not
	// the rights of that role.
	Lacks string
	// Tapped has a Witness see every write of the manager, and end it behind any.
	// Whoever uses it has a manager that others may kill at any time.
	Tapped bool
	// EvictionRequests has the API server serve lifecycle.k8s.io/v1alpha1, which Kubernetes
	// has since 1.37, and the manager act on it, with the rights for it.
	EvictionRequests bool
	// Alone is for tests that do to all what they want for themselves, as those that kill the
	// manager: one at a time has the control plane. They may run beside all other tests.
	Alone bool
}

// check refuses what does not go together.
func (s Spec) check() error {
	if s.RealNodes == 0 {
		return nil
	}
	for _, with := range []struct {
		name string
		set  bool
		why  string
	}{
		{"Nodes", s.Nodes != 0, "pods of simulated nodes cannot be reached from real ones"},
		{"OnlyAPIServer", s.OnlyAPIServer, "nobody schedules pods to them"},
		{"Replicas", s.Replicas, "the API server calls webhooks in the network of the nodes, and these managers listen in that of the test"},
		{"Tapped", s.Tapped, "this manager is behind a proxy in the network of the test, and the API server is in that of the nodes"},
	} {
		if with.set {
			return fmt.Errorf("the Spec has RealNodes and %s, which do not go together: %s", with.name, with.why)
		}
	}
	return nil
}

func (s Spec) auditPolicy() string {
	switch {
	case s.Audit:
		return sandbox.AuditWrites
	case s.OnlyAPIServer, s.NoManager, s.Workload:
		return ""
	default:
		return sandbox.AuditOf(Account)
	}
}

// Cluster is one test's view of a running control plane.
type Cluster struct {
	// Client is the administrator's.
	Client client.WithWatch
	// Config is the administrator's, without client-side limits.
	Config *rest.Config
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// AuditLog is the path of the audit log, if the Spec asked for it.
	AuditLog string
	// EtcdURL is where etcd answers.
	EtcdURL string
	// Nodes are the names of the nodes that the Spec asked for, of whatever kind.
	Nodes []string

	plane   *plane
	prefix  string
	created counter
}

// Main runs the tests of a package, ends what they started and returns the
// exit code.
func Main(m *testing.M) int { return run(m, nil) }

// MainUnderRights is Main for a package that lets the manager do all that it does: it
// fails if the manager has asked for anything that the chart gives it no right to, and,
// if all tests were run, if it has a right that nothing used. Exempt is what tests want
// forbidden, such as "get secrets.", and rights that are used without a request; what
// nothing needs any more fails, too.
func MainUnderRights(m *testing.M, exempt ...string) int {
	return run(m, func() int { return checkRights(exempt) })
}

// MainOfEvictionRequests is Main for a package whose control planes all serve
// EvictionRequests: it runs nothing on a Kubernetes that has none.
func MainOfEvictionRequests(m *testing.M) int {
	if err := sandbox.CheckEvictionRequests(sandbox.RequestedVersion()); err != nil {
		fmt.Println("nothing is run:", err)
		return 0
	}
	return Main(m)
}

func run(m *testing.M, then func() int) int {
	machine.Main(os.Args)
	if err := prebuilt.Check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Of controller-runtime, tests only use the client, which warns of no logger.
	log.SetLogger(logr.Discard())
	shared.mu.Lock()
	shared.main = true
	shared.mu.Unlock()
	code := m.Run()
	if then != nil {
		code = max(code, then())
	}
	for _, c := range shared.planes {
		code = max(code, c.provider.stop())
		if c.tap != nil {
			c.tap.stop()
		}
		if c.service != nil {
			c.service.stop()
		}
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop cluster:", err)
			code = max(code, 1)
		}
	}
	return code
}

// plane is a control plane and the manager that acts on it.
type plane struct {
	*sandbox.Cluster
	manager  Manager
	provider providing
	tap      *tap     // nil unless the Spec asked for it
	service  *service // nil unless the Spec asked for Replicas
	alone    sync.Mutex
}

// shared are the control planes of this process.
var shared = struct {
	mu   sync.Mutex
	main bool
	// planes are by what tells them apart: the Spec without Nodes.
	planes map[Spec]*plane
	users  int // how often one was asked for
}{planes: map[Spec]*plane{}}

// Start returns a control plane with our CRDs installed, unless it is a workload
// cluster.
func Start(t testing.TB, spec Spec) *Cluster {
	t.Helper()
	p, number, err := start(spec)
	if err != nil {
		t.Fatalf("start cluster: %v", err)
	}
	if spec.Alone {
		p.alone.Lock()
		t.Cleanup(p.alone.Unlock)
	}
	c := &Cluster{
		Client:     p.Client,
		Config:     p.Config,
		Kubeconfig: p.Kubeconfig,
		AuditLog:   p.AuditLog,
		EtcdURL:    p.EtcdURL,
		plane:      p,
		prefix:     fmt.Sprintf("%s-%d", slug(t.Name()), number),
	}
	switch {
	case spec.RealNodes > 0:
		c.Nodes = p.RealNodes()
	case spec.Nodes > 0:
		c.Nodes = c.AddNodes(t, spec.Nodes)
	}
	return c
}

func start(spec Spec) (*plane, int, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.main {
		return nil, 0, errors.New("the package needs func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }")
	}
	if err := spec.check(); err != nil {
		return nil, 0, err
	}
	shared.users++
	k := spec
	k.Nodes = 0
	if p, ok := shared.planes[k]; ok {
		return p, shared.users, nil
	}
	binaries, err := prebuilt.ControlPlane(sandbox.BuildSpec{Nodes: spec.RealNodes > 0})
	if err != nil {
		return nil, 0, err
	}
	programs, err := sandbox.ProgramDir()
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience.Bound)
	defer cancel()
	objects, err := chart(ctx, spec)
	if err != nil {
		return nil, 0, err
	}
	c, err := sandbox.Start(ctx, binaries, sandbox.Spec{
		RealNodes: spec.RealNodes, OnlyAPIServer: spec.OnlyAPIServer, Audit: spec.auditPolicy(), Chart: objects, NoMachines: spec.NoMachines,
		EvictionRequests: spec.EvictionRequests, Programs: programs,
	})
	if err != nil {
		return nil, 0, err
	}
	p := &plane{Cluster: c}
	p.manager.plane, p.manager.args = p, spec.managerArgs()
	shared.planes[k] = p
	if spec.Workload {
		return p, shared.users, nil
	}
	if spec.Replicas {
		if p.service, err = newService(); err != nil {
			return nil, 0, err
		}
	}
	if spec.Tapped {
		if p.tap, err = newTap(p); err != nil {
			return nil, 0, err
		}
	}
	return p, shared.users, c.InstallCRDs(ctx)
}
