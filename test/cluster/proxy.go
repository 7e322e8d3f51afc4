package cluster

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// Proxy stands on the way to the API server and can cut it.
type Proxy struct {
	kubeconfig string // the administrator's, straight to the API server
	server     *url.URL
	listener   net.Listener
	running    sync.WaitGroup

	mu          sync.Mutex
	cut         bool
	flows       chan struct{} // closed while what is sent goes through
	connections map[net.Conn]bool
}

// Proxy returns a way to the API server that ends with the test.
func (c *Cluster) Proxy(t testing.TB) *Proxy {
	t.Helper()
	server, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatalf("read the address of the API server: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	p := &Proxy{
		kubeconfig: c.Kubeconfig, server: server, listener: listener,
		flows: make(chan struct{}), connections: map[net.Conn]bool{},
	}
	close(p.flows)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		p.Cut()
		_ = listener.Close()
		p.running.Wait()
	})
	return p
}

// URL is where the API server is through the proxy.
func (p *Proxy) URL() string {
	through := *p.server
	through.Host = p.listener.Addr().String()
	return through.String()
}

// Kubeconfig is the administrator's, through the proxy.
func (p *Proxy) Kubeconfig(t testing.TB) []byte {
	t.Helper()
	config, err := clientcmd.LoadFromFile(p.kubeconfig)
	if err != nil {
		t.Fatalf("read the kubeconfig: %v", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = p.URL()
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatalf("write the kubeconfig: %v", err)
	}
	return content
}

// Cut ends all connections, and new ones as soon as they are made.
func (p *Proxy) Cut() {
	p.turn(true, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for connection := range p.connections {
		_ = connection.Close()
	}
}

// Hang keeps all connections, and lets nothing through.
func (p *Proxy) Hang() { p.turn(false, false) }

// Restore lets everything through, also what was sent meanwhile.
func (p *Proxy) Restore() { p.turn(false, true) }

func (p *Proxy) turn(cut, flow bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	flowed := true
	select {
	case <-p.flows:
	default:
		flowed = false
	}
	switch {
	case flow && !flowed:
		close(p.flows)
	case !flow && flowed:
		p.flows = make(chan struct{})
	}
}

// gate is closed as long as what is sent goes through.
func (p *Proxy) gate() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flows
}

func (p *Proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.connect(from) })
	}
}

func (p *Proxy) connect(from net.Conn) {
	defer p.forget(from)
	if !p.keep(from) {
		return
	}
	to, err := net.Dial("tcp", p.server.Host)
	if err != nil {
		return
	}
	defer p.forget(to)
	if !p.keep(to) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.pump(from, to) })
	p.pump(to, from)
	back.Wait()
}

// keep is false if the way is cut.
func (p *Proxy) keep(connection net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections[connection] = true
	return !p.cut
}

func (p *Proxy) forget(connection net.Conn) {
	_ = connection.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connections, connection)
}

// pump sends on what it reads, and ends both connections with either of them.
func (p *Proxy) pump(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(gated{to, p}, from)
}

// gated is a connection that waits while nothing goes through.
type gated struct {
	net.Conn
	proxy *Proxy
}

func (g gated) Write(data []byte) (int, error) {
	<-g.proxy.gate()
	return g.Conn.Write(data)
}
