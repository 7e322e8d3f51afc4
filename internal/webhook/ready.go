package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readiness is whether the API server can call us: the server listens, what it
// serves is trusted by every one of our webhook configurations, and what answers are
// made of has been read. Once it was so, only a rotation can change it, and that is
// over in a moment.
type readiness struct {
	reader    client.Reader
	informers informers
	address   string
	dnsName   string
	reached   atomic.Bool
}

// check is a healthz.Checker.
func (r *readiness) check(request *http.Request) error {
	if r.reached.Load() {
		return nil
	}
	if err := r.informers.synced(); err != nil {
		return err
	}
	bundles, err := r.bundles(request.Context())
	if err != nil {
		return err
	}
	for _, bundle := range bundles {
		if err := r.trusted(request.Context(), bundle); err != nil {
			return err
		}
	}
	r.reached.Store(true)
	return nil
}

// bundles are the authorities that our webhook configurations trust.
func (r *readiness) bundles(ctx context.Context) ([]string, error) {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := r.reader.Get(ctx, client.ObjectKey{Name: configurationName}, mutating); err != nil {
		return nil, fmt.Errorf("get our mutating webhook configuration: %w", err)
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := r.reader.Get(ctx, client.ObjectKey{Name: configurationName}, validating); err != nil {
		return nil, fmt.Errorf("get our validating webhook configuration: %w", err)
	}
	found := map[string]bool{}
	for _, hook := range mutating.Webhooks {
		found[string(hook.ClientConfig.CABundle)] = true
	}
	for _, hook := range validating.Webhooks {
		found[string(hook.ClientConfig.CABundle)] = true
	}
	bundles := make([]string, 0, len(found))
	for bundle := range found {
		bundles = append(bundles, bundle)
	}
	return bundles, nil
}

// trusted connects to our server as the API server does.
func (r *readiness) trusted(ctx context.Context, bundle string) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(bundle)) {
		return errors.New("our webhook configurations trust no authority yet")
	}
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: r.dnsName, MinVersion: tls.VersionTLS13}}
	connection, err := dialer.DialContext(ctx, "tcp", r.address)
	if err != nil {
		return fmt.Errorf("call our webhook server: %w", err)
	}
	return connection.Close()
}
