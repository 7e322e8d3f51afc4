package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"ebbtide.dev/ebbtide/internal/sandbox/machine"
)

const (
	// serviceRange are the addresses of Services, and apiService that of kubernetes.
	serviceRange = "10.0.0.0/16"
	apiService   = "10.0.0.1"
	proxyUser    = "kube-proxy"
)

// openRack makes the network of real nodes, in which the control plane runs too, and has
// a port of the host's loopback lead to the API server.
func (c *Cluster) openRack(ctx context.Context) (err error) {
	if err := os.Mkdir(c.path("image"), 0o700); err != nil {
		return err
	}
	archive := c.path("image/pause.tar")
	if err := writePauseImage(c.binaries.Path("pause"), archive); err != nil {
		return err
	}
	c.rack, err = machine.Open(ctx, machine.Spec{
		Dir: c.Dir, Programs: c.binaries.Dir, Nodes: c.RealNodes(), Services: serviceRange, Pause: archive,
	})
	if err != nil {
		return err
	}
	if c.forwarded, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	c.apiPort = c.forwarded.Addr().(*net.TCPAddr).Port
	go c.rack.Forward(c.forwarded, fmt.Sprintf("127.0.0.1:%d", c.apiPort))
	return nil
}

// closeRack stops all machines.
func (c *Cluster) closeRack() error {
	if c.forwarded != nil {
		_ = c.forwarded.Close()
	}
	if c.rack == nil {
		return nil
	}
	return c.rack.Close()
}

// RealNodes are the names of the real nodes, on or off.
func (c *Cluster) RealNodes() []string { return c.names(c.spec.RealNodes) }

var errNoRealNodes = errors.New("this sandbox has no real nodes; start one with them")

// bootNodes boots the real nodes if there are any, and returns when pods can be scheduled
// to them.
func (c *Cluster) bootNodes(ctx context.Context) error {
	if c.rack == nil {
		return nil
	}
	ca, err := os.ReadFile(c.credentials.path(kubeletClientCert))
	if err != nil {
		return err
	}
	proxy, err := c.credentials.kubeconfigAt(proxyUser, c.apiURL(machine.ControlAddress))
	if err != nil {
		return err
	}
	err = c.rack.BootNodes(ctx, func(node string) (machine.Credentials, error) {
		kubelet, err := c.credentials.kubeconfigAt(node, c.apiURL(machine.ControlAddress))
		return machine.Credentials{Kubelet: string(kubelet), Proxy: string(proxy), ClientCA: string(ca)}, err
	})
	if err != nil {
		return err
	}
	for _, name := range c.RealNodes() {
		if err := c.waitSchedulable(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// proxy has the control plane reach Services. It takes itself for the first node: without
// one it would wait for half a minute.
func (c *Cluster) proxy() (component, error) {
	config := c.path("kube-proxy.yaml")
	text := machine.ProxyConfig(c.RealNodes()[0], c.credentials.kubeconfig(proxyUser))
	return component{
		name: "kube-proxy", port: 10256, ready: "http://127.0.0.1:%d/healthz",
		args: func(int) []string { return []string{"--config=" + config} },
	}, os.WriteFile(config, []byte(text), 0o600)
}

func (c *Cluster) apiURL(address string) string {
	return "https://" + net.JoinHostPort(address, fmt.Sprint(c.apiPort))
}

// PowerOff cuts the power of a real node: everything on it ends at once. Kubernetes is not
// told.
//
// Errors: there is no such node.
func (c *Cluster) PowerOff(name string) error {
	if c.rack == nil {
		return errNoRealNodes
	}
	return c.rack.Off(name)
}

// PowerOn boots a real node whose power is off. Its disk is as it was.
//
// Errors: there is no such node; it is on.
func (c *Cluster) PowerOn(ctx context.Context, name string) error {
	if c.rack == nil {
		return errNoRealNodes
	}
	return c.rack.On(ctx, name)
}

// IsOn returns true if the power of a real node is on.
func (c *Cluster) IsOn(name string) bool { return c.rack != nil && c.rack.IsOn(name) }

// Import gives all real nodes that are on the images of an archive.
func (c *Cluster) Import(ctx context.Context, archive string) error {
	archive, err := filepath.Abs(archive)
	if err != nil {
		return err
	}
	for _, name := range c.RealNodes() {
		if err := c.rack.Import(ctx, name, archive); err != nil {
			return err
		}
	}
	return nil
}

// Manifests is the folder of the host with the static pods of a real node.
func (c *Cluster) Manifests(name string) string { return c.rack.Manifests(name) }

// NodeLogs is the folder with what a real node has logged.
func (c *Cluster) NodeLogs(name string) string { return c.rack.LogDir(name) }

// dial connects from where the control plane is.
func (c *Cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.rack == nil {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return c.rack.Dial(ctx, network, address)
}

// enter starts programs where the control plane is.
func (c *Cluster) enter(start func() error) error {
	if c.rack == nil {
		return start()
	}
	return c.rack.Enter(start)
}

// Transport returns a transport in the network of the control plane, which reaches real nodes,
// their pods and Services.
func (c *Cluster) Transport() *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: c.dial}
}
