package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ebbtide.dev/ebbtide/internal/certificate"
)

// The manager reads this one Secret: lists and watches by its name are all that RBAC allows.
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=ebbtide-webhook-tls,verbs=list;watch,namespace=release

var expiry = prometheus.NewDesc("ebbtide_webhook_certificate_expiry_timestamp_seconds",
	"When the certificate that the webhooks serve expires, in seconds since 1970.", nil, nil)

// Certificate holds what the manager shows to the API server, and to Prometheus: the certificate
// in the Secret, also after that was renewed. The manager writes neither the Secret nor the
// webhook configurations. The zero value has none yet.
type Certificate struct {
	current atomic.Pointer[tls.Certificate]
}

// certificateWatch keeps a certificate up to date.
type certificateWatch struct {
	*Certificate
	secrets cache.Cache
	log     logr.Logger
}

// watch has the manager serve the certificate in the Secret of the namespace.
func (c *Certificate) watch(mgr manager.Manager, namespace string) error {
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{namespace: {}},
			Field:      fields.OneTermEqualSelector(metav1.ObjectNameField, certificate.SecretName),
		}},
	})
	if err != nil {
		return fmt.Errorf("set up the cache of the certificate: %w", err)
	}
	if err := mgr.Add(&certificateWatch{c, secrets, mgr.GetLogger().WithName("webhook")}); err != nil {
		return fmt.Errorf("add the certificate: %w", err)
	}
	return nil
}

// NeedLeaderElection says that every replica answers requests.
func (c *certificateWatch) NeedLeaderElection() bool { return false }

// Start keeps the certificate up to date until the context ends.
func (c *certificateWatch) Start(ctx context.Context) error {
	informer, err := c.secrets.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch the Secret of the certificate: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.take(object) },
		UpdateFunc: func(_, object any) { c.take(object) },
	})
	if err != nil {
		return fmt.Errorf("watch the Secret of the certificate: %w", err)
	}
	return c.secrets.Start(ctx)
}

// take serves the certificate of the Secret from now on. While a Secret has none, or one that
// cannot be read, the last one is served.
func (c *certificateWatch) take(object any) {
	secret, ok := object.(*corev1.Secret)
	if !ok || len(secret.Data[corev1.TLSCertKey]) == 0 {
		return
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		c.log.Error(err, "The certificate in the Secret cannot be read", "secret", client.ObjectKeyFromObject(secret))
		return
	}
	if last := c.current.Swap(&pair); last == nil || !last.Leaf.Equal(pair.Leaf) {
		c.log.Info("Serving another certificate", "until", pair.Leaf.NotAfter)
	}
}

// Get is what tls.Config calls for every connection.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := c.current.Load(); pair != nil {
		return pair, nil
	}
	return nil, fmt.Errorf("Secret %s has no certificate yet: a hook of the chart or cert-manager makes it", certificate.SecretName)
}

// Describe is prometheus.Collector.
func (c *Certificate) Describe(all chan<- *prometheus.Desc) { all <- expiry }

// Collect is prometheus.Collector. While no certificate is served there is no metric.
func (c *Certificate) Collect(all chan<- prometheus.Metric) {
	if pair := c.current.Load(); pair != nil {
		all <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(pair.Leaf.NotAfter.Unix()))
	}
}
