package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/machine"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// Spec is the cluster to start.
type Spec struct {
	// Dir holds its files. Defaults to a new folder that Stop removes.
	Dir string
	// Nodes is the number of kwok nodes at the start.
	Nodes int
	// RealNodes is the number of real nodes, each with a kubelet of its own. They need Linux and root,
	// see machine.Check, and binaries that were built with Nodes. There are no kwok nodes then.
	RealNodes int
	// NodePrefix begins their names, before "-" and a number. Defaults to "node".
	NodePrefix string
	// OnlyAPIServer leaves everything out but etcd and kube-apiserver: enough
	// for validation and for reconcilers that a test steps by hand.
	OnlyAPIServer bool
	// QPS limits the requests per second of the controller manager and the scheduler, twice that in a
	// burst. Defaults to 500.
	QPS int
	// Audit is an audit policy by which the API server logs requests to
	// Cluster.AuditLog; without one it logs none.
	Audit string
	// Chart holds the objects that Helm would install beside the CRDs; its one ServiceAccount is the
	// manager's. Defaults to charts.Sandbox.
	Chart []*unstructured.Unstructured
	// NoMachines has managers leave Machines alone. Then they need no rights for them.
	NoMachines bool
	// EvictionRequests has the API server serve lifecycle.k8s.io/v1alpha1, and managers act
	// on it, which Kubernetes before 1.37 cannot: see CheckEvictionRequests. They need rights
	// for it.
	EvictionRequests bool
	// Programs is a folder with programs of the checkout that are built. Without one they are
	// built when they are started.
	Programs string
}

// Cluster is a running control plane.
type Cluster struct {
	// Dir holds its files and logs.
	Dir string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// ManagerKubeconfig is the path of the kubeconfig of the manager, which may
	// do what its roles say.
	ManagerKubeconfig string
	// AuditLog is the path of the API server's audit log, if asked for: one
	// JSON object per line.
	AuditLog string
	// EtcdURL is the address of etcd, which needs no credentials.
	EtcdURL string
	// Config is the administrator's, without client-side limits.
	Config *rest.Config
	// Client is the administrator's.
	Client client.WithWatch

	spec        Spec
	account     Account
	binaries    Binaries
	credentials credentials
	unlock      func()
	rack        *machine.Rack // nil without real nodes
	forwarded   net.Listener  // leads to the API server of real nodes
	apiPort     int           // of the API server, if it must have this one
	ended       chan *process // the first process that ended

	mu        sync.Mutex
	processes []*process
	managers  int // how many were started

	buildMu sync.Mutex
	built   map[string]bool // what was built from the checkout, by folder
}

// Scheme knows every kind that a sandbox deals with.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme),
		api.AddToScheme(scheme),
	)
	return scheme, err
}

// Start runs a control plane. When it returns, the API server answers, the
// controllers run and the nodes are ready. On an error nothing is left behind.
func Start(ctx context.Context, binaries Binaries, spec Spec) (*Cluster, error) {
	if spec.QPS == 0 {
		spec.QPS = 500
	}
	if spec.NodePrefix == "" {
		spec.NodePrefix = "node"
	}
	c := &Cluster{spec: spec, binaries: binaries, ended: make(chan *process, 1), built: map[string]bool{}}
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("start control plane: %w", errors.Join(err, c.Stop()))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if c.spec.EvictionRequests {
		if err := CheckEvictionRequests(c.binaries.Version); err != nil {
			return err
		}
	}
	if err := c.readChart(); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	_, etcdPort, err := c.run(ctx, c.etcd())
	if err != nil {
		return err
	}
	c.EtcdURL = fmt.Sprintf("http://127.0.0.1:%d", etcdPort)
	_, port, err := c.run(ctx, c.apiserver(etcdPort))
	if err != nil {
		return err
	}
	if err := c.connect(port); err != nil {
		return err
	}
	if c.spec.OnlyAPIServer {
		return nil
	}
	if err := c.runControllers(ctx); err != nil {
		return err
	}
	return c.CreateNodes(ctx, c.names(c.spec.Nodes), nil)
}

// prepare makes the folder and the files that the components start from.
func (c *Cluster) prepare(ctx context.Context) error {
	if err := c.makeDir(ctx); err != nil {
		return err
	}
	var err error
	if c.credentials, err = newCredentials(c.Dir, identities(c.account, c.RealNodes())); err != nil {
		return err
	}
	if c.spec.RealNodes > 0 {
		if err := c.openRack(ctx); err != nil {
			return err
		}
	}
	return c.writeAuditPolicy()
}

// connect writes the kubeconfigs and makes the administrator's client.
func (c *Cluster) connect(port int) error {
	if err := c.credentials.writeKubeconfigs(port); err != nil {
		return err
	}
	c.Kubeconfig = c.credentials.kubeconfig("admin")
	c.ManagerKubeconfig = c.credentials.kubeconfig("manager")
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	// Whoever wants to hear what the API server warns of says so.
	config.WarningHandler = rest.NoWarnings{}
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	c.Config = config
	c.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return err
}

// runControllers starts what needs only the API server, all at the same time.
func (c *Cluster) runControllers(ctx context.Context) error {
	ofNodes := c.kwok
	if c.rack != nil {
		ofNodes = c.proxy
	}
	last, err := ofNodes()
	if err != nil {
		return err
	}
	results := make(chan error)
	components := []component{c.controllerManager(), c.scheduler(), last}
	go func() { results <- c.bootNodes(ctx) }()
	for _, comp := range components {
		go func() {
			_, _, err := c.run(ctx, comp)
			results <- err
		}()
	}
	for range len(components) + 1 {
		err = errors.Join(err, <-results)
	}
	return err
}

// Stop ends every process and removes the files, if Start made the folder.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	processes := c.processes
	c.processes = nil
	c.mu.Unlock()
	// Last started, first ended: a client ends before its server.
	for i := len(processes) - 1; i >= 0; i-- {
		processes[i].kill()
	}
	err := c.closeRack()
	if c.spec.Dir == "" && c.Dir != "" {
		err = errors.Join(err, os.RemoveAll(c.Dir))
	}
	if c.unlock != nil {
		c.unlock()
	}
	return err
}

// Wait returns nil when ctx is done, or an error when one of the processes ends
// before that.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case p := <-c.ended:
		return p.failure("ended")
	}
}

// add makes the cluster responsible for a process.
func (c *Cluster) add(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	go func() {
		<-p.done
		select {
		case c.ended <- p:
		default: // Wait needs to know of one only
		}
	}()
}

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }
