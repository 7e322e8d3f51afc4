package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Bounds of a list, of an object or event, of anything else, and of a decoded list.
	responseBytes, messageBytes, errorBytes, decodedBytes = 8 << 20, 4 << 20, 64 << 10, 32 << 20
	// headerBytes is the bound of the headers of a response.
	headerBytes = 64 << 10
	// pageObjects is the largest page of a list that is requested. A page counts as at least
	// pageBytes, so that a list of empty pages comes to an end.
	pageObjects, pageBytes = 100, 64 << 10
	// buffers and copies count how often the bytes of a message are in memory while it is
	// received and while it is decoded.
	buffers, copies = 2, 5
	// A cluster has at most so many network connections. A connection and a request buffer so
	// many bytes.
	connections, connectionBuffer, streamBuffer = 32, 1 << 20, 128 << 10
)

// Options configures a Guard.
type Options struct {
	// Ledger counts the memory of clusters, by the namespaces of their Clusters.
	Ledger    *Ledger
	Namespace string
	Kinds     Kinds
	// Answer bounds a probe, Message a request and one event of a watch.
	Answer, Message time.Duration
}

// Guard sends all requests to a remote cluster.
type Guard struct {
	Client *http.Client
	// Broken receives errors that may end the connection.
	Broken chan error

	options   Options
	transport *http.Transport
	dialer    *connrotation.Dialer
	server    *url.URL
	secrets   secrets
	account   *account
	breach    atomic.Pointer[breach]
	refused   atomic.Bool

	mu sync.Mutex
	// lists are the bytes of incomplete lists.
	lists map[string]int64
}

// New returns a Guard that has no connection yet, and opens none after the context has ended.
//
// Errors: the config is invalid.
func New(ctx context.Context, config *rest.Config, options Options) (*Guard, error) {
	g := &Guard{Broken: make(chan error, 1), options: options, secrets: secretsOf(config), lists: map[string]int64{}}
	var err error
	if g.server, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, g.secrets.describe(err)
	}
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig cannot be used: %w", g.secrets.describe(err))
	}
	network := &net.Dialer{Timeout: options.Answer}
	g.dialer = connrotation.NewDialer(func(own context.Context, kind, address string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return network.DialContext(own, kind, address)
	})
	g.transport = utilnet.SetTransportDefaults(&http.Transport{
		Proxy: config.Proxy, TLSClientConfig: trust, DialContext: g.dialer.DialContext,
		DisableCompression:     true, // Compressed data can grow a thousandfold.
		MaxResponseHeaderBytes: headerBytes, MaxConnsPerHost: connections,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connectionBuffer},
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, g)
	if err != nil {
		return nil, g.secrets.describe(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	g.Client = &http.Client{Transport: wrapped, CheckRedirect: stay}
	g.account = options.Ledger.open(options.Namespace, g.Report)
	return g, nil
}

// Report reports an error of the cluster. A breach ends the connection for good.
func (g *Guard) Report(err error) {
	if found := breachIn(err); found != nil && g.breach.CompareAndSwap(nil, found) {
		g.dialer.CloseAll()
	}
	select {
	case g.Broken <- err:
	default: // Another one is reported already.
	}
}

// Refused reports whether the cluster has refused a request to the user of the kubeconfig.
func (g *Guard) Refused() bool { return g.refused.Load() }

// Keep counts an object of a cache, once. It is called before the cache has the object.
func (g *Guard) Keep(object client.Object) {
	if err := g.account.keep(object); err != nil {
		g.Report(err)
	}
}

// Follow counts the objects of a change again: one that went and came back was dropped after
// the cache had counted it.
func (g *Guard) Follow(old, now client.Object) {
	if now == nil {
		g.account.drop(old)
	} else {
		g.Keep(now)
	}
}

// Close ends all requests.
func (g *Guard) Close() {
	g.dialer.CloseAll()
	g.transport.CloseIdleConnections()
	g.account.close()
}

// Describe returns an error that names the server and holds no secret.
func (g *Guard) Describe(err error) error {
	server := url.URL{Scheme: g.server.Scheme, Host: g.server.Host}
	found := breachIn(err)
	if first := g.breach.Load(); first != nil {
		found = first
	}
	if found != nil {
		return fmt.Errorf("connect to %s: %w", server.String(), &breach{g.secrets.line(found.text)})
	}
	return fmt.Errorf("connect to %s: %w", server.String(), g.secrets.describe(err))
}

// Probe returns an error unless the API server is ready. A user who may not read that still
// gets an answer of an API server that knows the user.
func (g *Guard) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.options.Answer)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.server.JoinPath("readyz").String(), nil)
	if err != nil {
		return err
	}
	response, err := g.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode == http.StatusUnauthorized:
		return errors.New("the credentials in the kubeconfig are refused: 401 Unauthorized")
	case response.StatusCode == http.StatusForbidden:
		return nil
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the API server is not ready: %s", response.Status)
	case !bytes.Equal(body, []byte("ok")):
		return errors.New("the server is not a Kubernetes API server")
	}
	return nil
}
