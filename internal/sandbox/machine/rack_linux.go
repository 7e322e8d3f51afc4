package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Rack is a control machine that is on, and nodes.
type Rack struct {
	spec    Spec
	unit    *unit // of systemd, which lends the group; nil without
	group   group
	janitor *janitor
	control *machine
	nodes   map[string]*machine
}

// Open boots the control machine. Who gets a rack closes it.
//
// Errors: real nodes cannot run here, see Host.Check.
func Open(ctx context.Context, spec Spec) (*Rack, error) {
	host := realHost()
	if err := host.Check(); err != nil {
		return nil, err
	}
	if len(spec.Nodes) > MaxNodes {
		return nil, fmt.Errorf("a rack has room for %d nodes, not %d", MaxNodes, len(spec.Nodes))
	}
	r := &Rack{spec: spec, nodes: map[string]*machine{}}
	err := r.openGroup(host)
	if err == nil {
		err = r.openControl(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// openGroup decides where the machines have their cgroups, and who removes them.
func (r *Rack) openGroup(host Host) error {
	all, err := host.hierarchies()
	if err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	name, err := ownGroupName()
	if err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if all[0].Alone && host.managed() {
		if r.unit, err = startUnit(name); err != nil {
			return err
		}
		all[0].Own, name = filepath.Join(all[0].Mount, r.unit.group), machinesName
	} else {
		if all[0].Alone {
			if all[0].Own, err = host.lender(all[0]); err != nil {
				return fmt.Errorf("make cgroup: %w", err)
			}
		}
		sweep(all)
	}
	r.group = group{all, name}
	r.janitor, err = startJanitor(r.group.dirs())
	return err
}

func (r *Rack) openControl(ctx context.Context) (err error) {
	order := order{Hostname: "control", Settings: map[string]string{
		"net/ipv4/ip_forward": "1",
		// What passes between nodes is no business of this machine.
		"net/bridge/bridge-nf-call-iptables": "0",
	}}
	r.control, err = r.newMachine(order, func(pid int) error { return wireControl(pid, r.spec.Services) })
	if err != nil {
		return err
	}
	return r.control.on(ctx)
}

// newMachine makes the folder of a machine that is off.
func (r *Rack) newMachine(o order, wire func(pid int) error) (*machine, error) {
	m := &machine{name: o.Hostname, dir: filepath.Join(r.spec.Dir, o.Hostname), group: r.group.below(o.Hostname), wire: wire}
	o.Dir = filepath.Join(m.dir, "root")
	o.Binds = map[string]string{programDir: r.spec.Programs}
	for target, name := range disk {
		o.Binds[target] = filepath.Join(m.dir, "disk", name)
	}
	for _, dir := range o.Binds {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	// An administrator puts static pods of the node here.
	if err := os.MkdirAll(r.Manifests(o.Hostname), 0o755); err != nil {
		return nil, err
	}
	o.MachineID = strings.ReplaceAll(string(uuid.NewUUID()), "-", "")
	o.Cgroups = r.group.all
	m.order = func() order {
		o.BootID = string(uuid.NewUUID())
		return o
	}
	return m, nil
}

// BootNodes boots all nodes, for the first time.
func (r *Rack) BootNodes(ctx context.Context, credentials func(node string) (Credentials, error)) error {
	for i, name := range r.spec.Nodes {
		number := i + 1
		c, err := credentials(name)
		if err != nil {
			return err
		}
		o := order{
			Hostname: name, Files: nodeFiles(name, number, c), Programs: nodePrograms(name, number),
			Settings: map[string]string{"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1"},
		}
		r.nodes[name], err = r.newMachine(o, func(pid int) error {
			return wireNode(r.control.pid(), pid, number, len(r.spec.Nodes))
		})
		if err != nil {
			return err
		}
	}
	results := make(chan error, len(r.nodes))
	for name, m := range r.nodes {
		go func() {
			if err := m.on(ctx); err != nil {
				results <- err
				return
			}
			results <- r.importPause(ctx, name)
		}()
	}
	var err error
	for range r.nodes {
		err = errors.Join(err, <-results)
	}
	return err
}

func (r *Rack) importPause(ctx context.Context, name string) error {
	if r.spec.Pause == "" {
		return nil
	}
	return r.Import(ctx, name, r.spec.Pause)
}

// Off cuts the power of a node. When it returns, nothing is left of it but its disk.
//
// Errors: there is no such node.
func (r *Rack) Off(name string) error {
	m, err := r.node(name)
	if err != nil {
		return err
	}
	return m.off()
}

// On boots a node. It is registered and Ready some seconds after that.
//
// Errors: there is no such node; it is on already; it does not boot.
func (r *Rack) On(ctx context.Context, name string) error {
	m, err := r.node(name)
	if err != nil {
		return err
	}
	return m.on(ctx)
}

// IsOn returns true if the power of a node is on.
func (r *Rack) IsOn(name string) bool {
	m, err := r.node(name)
	return err == nil && m.pid() != 0
}

// Import gives a node the images of an archive, in the format of `docker save` or OCI.
//
// Errors: there is no such node; it is off; the archive is none.
func (r *Rack) Import(ctx context.Context, name, archive string) error {
	m, err := r.node(name)
	if err != nil {
		return err
	}
	if m.pid() == 0 {
		return fmt.Errorf("import %s to node %s: it is off", archive, name)
	}
	ctr := filepath.Join(r.spec.Programs, "ctr")
	cmd := exec.CommandContext(ctx, ctr, "--address", m.path(containerdSocket), "--namespace", "k8s.io", "images", "import", archive)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("import %s to node %s: %w: %s", archive, name, err, output)
	}
	return nil
}

// LogDir is the folder of the host with what a node has logged: its programs, and its pods.
func (r *Rack) LogDir(name string) string {
	return filepath.Join(r.spec.Dir, name, "disk", disk[logDir])
}

// Manifests is the folder of the host with the static pods of a node.
func (r *Rack) Manifests(name string) string {
	return filepath.Join(r.spec.Dir, name, "disk", disk[kubernetesDir], filepath.Base(manifestDir))
}

func (r *Rack) node(name string) (*machine, error) {
	if m, ok := r.nodes[name]; ok {
		return m, nil
	}
	return nil, fmt.Errorf("there is no real node %q; choose one of %s", name, strings.Join(r.spec.Nodes, ", "))
}

// Enter runs f in the network of the control machine: sockets that it opens stay there, and
// programs that it starts. f must do so in its own goroutine.
func (r *Rack) Enter(f func() error) error { return r.control.enter(f) }

// Dial connects to an address of numbers in the network of the control machine.
func (r *Rack) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = r.Enter(func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Forward leads connections to a listener of the host to an address in the network of the
// control machine, until the listener is closed.
func (r *Rack) Forward(listener net.Listener, address string) {
	forward(listener, func() (net.Conn, error) { return r.Dial(context.Background(), "tcp", address) })
}

// Close stops everything. Only folders remain.
func (r *Rack) Close() error {
	results := make(chan error, len(r.nodes))
	for _, m := range r.nodes {
		go func() { results <- m.off() }()
	}
	var err error
	for range r.nodes {
		err = errors.Join(err, <-results)
	}
	if r.control != nil {
		err = errors.Join(err, r.control.off())
	}
	err = errors.Join(err, r.group.remove())
	if r.janitor != nil {
		err = errors.Join(err, r.janitor.stop())
	}
	if r.unit != nil {
		err = errors.Join(err, r.unit.stop())
	}
	return err
}
