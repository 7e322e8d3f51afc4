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

// RBAC allows lists and watches of this Secret by name only.
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=ebbtide-webhook-tls,verbs=list;watch,namespace=release

var expiry = prometheus.NewDesc("ebbtide_webhook_certificate_expiry_timestamp_seconds",
	"Expiry of the certificate that the webhooks serve, in seconds since 1970.", nil, nil)

// Certificate holds the certificate of the Secret for the API server and Prometheus, also after a
// renewal. The zero value has none yet.
type Certificate struct {
	current atomic.Pointer[tls.Certificate]
}

// certificateWatch updates a certificate from the Secret.
type certificateWatch struct {
	*Certificate
	secrets cache.Cache
	log     logr.Logger
}

// watch adds the watch of the Secret to the manager.
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

// NeedLeaderElection returns false, as every replica serves requests.
func (c *certificateWatch) NeedLeaderElection() bool { return false }

// Start updates the certificate until the context ends.
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

// take serves the certificate of the Secret, unless it has none or an invalid one.
func (c *certificateWatch) take(object any) {
	secret, ok := object.(*corev1.Secret)
	if !ok || len(secret.Data[corev1.TLSCertKey]) == 0 {
		return
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		c.log.Error(err, "Ignored an invalid certificate", "secret", client.ObjectKeyFromObject(secret))
		return
	}
	if last := c.current.Swap(&pair); last == nil || !last.Leaf.Equal(pair.Leaf) {
		c.log.Info("Serving new certificate", "expires", pair.Leaf.NotAfter)
	}
}

// Get implements GetCertificate of tls.Config.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := c.current.Load(); pair != nil {
		return pair, nil
	}
	return nil, fmt.Errorf("Secret %s has no certificate yet; a hook of the chart or cert-manager creates it", certificate.SecretName)
}

// Describe implements prometheus.Collector.
func (c *Certificate) Describe(all chan<- *prometheus.Desc) { all <- expiry }

// Collect implements prometheus.Collector.
func (c *Certificate) Collect(all chan<- prometheus.Metric) {
	if pair := c.current.Load(); pair != nil {
		all <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(pair.Leaf.NotAfter.Unix()))
	}
}
