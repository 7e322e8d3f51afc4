package workload

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

	"ebbtide.dev/ebbtide/internal/kube"
)

// requestTimeout is how long one request may take that is no watch.
const requestTimeout = 30 * time.Second

// What of a connection, and of one request on it, is kept until it is read.
const connectionBuffer, streamBuffer = 1 << 20, 128 << 10

// line is how requests get to a cluster. It shares its network connections with
// nobody, so that it can end them: with them ends every request.
type line struct {
	config *rest.Config
	server *url.URL
	// client is for caches, bounded for everything else.
	client, bounded *http.Client
	transport       *http.Transport
	dialer          *connrotation.Dialer
	answer          time.Duration
	secrets         secrets
	account         *account
	// skew is how far our clock is ahead of the cluster's.
	skew *kube.Skew
	// broken has errors that end the connection, among them the breach that is
	// found, if there is one.
	broken chan error
	// refused is told of refusals for want of a right.
	refused chan struct{}
	found   atomic.Pointer[breach]
}

// terms are on which a line is used.
type terms struct {
	// answer is how long a cluster may take to say that it is there.
	answer  time.Duration
	account *account
	kinds   catalogue
	skew    *kube.Skew
}

// newLine dials nothing. When the context ends, nothing is dialled any more.
func newLine(ctx context.Context, config *rest.Config, terms terms) (*line, error) {
	secrets := secretsOf(config)
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, secrets.describe(err)
	}
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig cannot be used: %w", secrets.describe(err))
	}
	limits := terms.account.ledger.limits
	l := &line{
		config: config, server: server, answer: terms.answer, secrets: secrets, account: terms.account, skew: terms.skew,
		dialer: connrotation.NewDialer(dial(ctx, terms)), broken: make(chan error, 1), refused: make(chan struct{}, 1),
	}
	l.transport = utilnet.SetTransportDefaults(&http.Transport{
		Proxy: config.Proxy, TLSClientConfig: trust, DialContext: l.dialer.DialContext,
		// What is compressed can become a thousand times as large.
		DisableCompression:     true,
		MaxResponseHeaderBytes: limits.headers, MaxConnsPerHost: int(limits.of[connections]),
		// What comes on a connection faster than it is read is kept up to here.
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connectionBuffer},
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, &guard{
		next: l.transport, limits: limits, account: l.account, secrets: secrets, kinds: terms.kinds, base: server.Path,
		broken: l.breaks, refused: l.refuses, found: l.breach, lists: map[string]*listing{},
	})
	if err != nil {
		return nil, secrets.describe(err)
	}
	l.account.onBreach(l.breaks)
	l.client = &http.Client{Transport: forCache{wrapped}, CheckRedirect: stay}
	l.bounded = &http.Client{Transport: wrapped, CheckRedirect: stay, Timeout: requestTimeout}
	return l, nil
}

// forCache marks the requests of a cache.
type forCache struct{ next http.RoundTripper }

type cacheKey struct{}

// RoundTrip is an http.RoundTripper.
func (f forCache) RoundTrip(request *http.Request) (*http.Response, error) {
	return f.next.RoundTrip(request.WithContext(context.WithValue(request.Context(), cacheKey{}, true)))
}

// breaks ends the connection for good if that is for a bound that was exceeded.
func (l *line) breaks(err error) {
	if found := breachIn(err); found != nil && l.found.CompareAndSwap(nil, found) {
		l.dialer.CloseAll()
	}
	l.tell(err)
}

// tell has the session look after the connection.
func (l *line) tell(err error) {
	select {
	case l.broken <- err:
	default: // One is as good as another.
	}
}

// refuses has the session look after the kubeconfig.
func (l *line) refuses() {
	select {
	case l.refused <- struct{}{}:
	default: // One is as good as another.
	}
}

// breach is the bound that the cluster has exceeded; nil if it has not.
func (l *line) breach() error {
	if found := l.found.Load(); found != nil {
		return found
	}
	return nil
}

// stay follows no cluster to another address.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func dial(line context.Context, terms terms) connrotation.DialFunc {
	dialer := &net.Dialer{Timeout: terms.answer}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if line.Err() != nil {
			return nil, errEnded
		}
		counted := &countedConn{account: terms.account}
		if err := terms.account.take(connections, 1); err != nil {
			counted.end()
			return nil, err
		}
		var err error
		if counted.Conn, err = dialer.DialContext(ctx, network, address); err != nil {
			counted.end()
			return nil, err
		}
		return counted, nil
	}
}

// countedConn is a network connection that counts until it is closed.
type countedConn struct {
	net.Conn
	account *account
	once    sync.Once
}

// Close ends the connection.
func (c *countedConn) Close() error {
	defer c.end()
	return c.Conn.Close()
}

func (c *countedConn) end() { c.once.Do(func() { c.account.give(connections, 1) }) }

// probe asks the API server whether it is ready. Whoever may not ask that still
// gets an answer of an API server that knows who asks.
func (l *line) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.answer)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.server.JoinPath("readyz").String(), nil)
	if err != nil {
		return err
	}
	response, err := l.bounded.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 256))
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
		return errors.New("what answers is not a Kubernetes API server")
	}
	return nil
}

// close ends all requests.
func (l *line) close() {
	l.dialer.CloseAll()
	l.transport.CloseIdleConnections()
	l.account.close()
}

// describe says what went wrong with the cluster, without anything secret.
func (l *line) describe(err error) error {
	if found := l.found.Load(); found != nil {
		err = found
	}
	server := url.URL{Scheme: l.server.Scheme, Host: l.server.Host}
	if found := breachIn(err); found != nil {
		return fmt.Errorf("connect to %s: %w", server.String(), &breach{l.secrets.line(found.text)})
	}
	return fmt.Errorf("connect to %s: %w", server.String(), l.secrets.describe(err))
}
