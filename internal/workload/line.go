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
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// requestTimeout is how long one request may take that is no watch.
const requestTimeout = 30 * time.Second

// line is how requests get to a cluster. It shares its network connections with
// nobody, so that it can end them: with them ends every request.
type line struct {
	config *rest.Config
	server *url.URL
	// client is for watches, bounded for everything else.
	client, bounded *http.Client
	transport       *http.Transport
	dialer          *connrotation.Dialer
	answer          time.Duration
	secrets         secrets
}

// newLine dials nothing. When the context ends, nothing is dialled any more.
func newLine(ctx context.Context, config *rest.Config, answer time.Duration) (*line, error) {
	secrets := secretsOf(config)
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, secrets.describe(err)
	}
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig cannot be used: %w", secrets.describe(err))
	}
	dialer := connrotation.NewDialer(dial(ctx, answer))
	transport := utilnet.SetTransportDefaults(&http.Transport{
		Proxy: config.Proxy, TLSClientConfig: trust, DialContext: dialer.DialContext,
		DisableCompression: config.DisableCompression,
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, secrets.describe(err)
	}
	return &line{
		config: config, server: server, transport: transport, dialer: dialer, answer: answer, secrets: secrets,
		client:  &http.Client{Transport: wrapped, CheckRedirect: stay},
		bounded: &http.Client{Transport: wrapped, CheckRedirect: stay, Timeout: requestTimeout},
	}, nil
}

// stay follows no cluster to another address.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func dial(line context.Context, within time.Duration) connrotation.DialFunc {
	dialer := &net.Dialer{Timeout: within}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if line.Err() != nil {
			return nil, errors.New("the connection to the cluster has ended")
		}
		return dialer.DialContext(ctx, network, address)
	}
}

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
}

// describe says what went wrong with the cluster, without anything secret.
func (l *line) describe(err error) error {
	server := url.URL{Scheme: l.server.Scheme, Host: l.server.Host}
	return fmt.Errorf("connect to %s: %w", server.String(), l.secrets.describe(err))
}
