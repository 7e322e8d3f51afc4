package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The names that the chart gives to what the certificate is about.
const (
	configurationName = "ebbtide"
	serviceName       = "ebbtide-webhook"
	secretName        = "ebbtide-webhook-certificate"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch,namespace=release
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=ebbtide-webhook-certificate,verbs=update,namespace=release
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=ebbtide,verbs=get;update

// certificate is what the webhook server shows to the API server: always the one
// of the Secret, from the moment it is there or is rotated.
type certificate struct {
	secrets cache.Cache
	// dir is what the rotation looks into; empty if somebody else rotates.
	dir     string
	log     logr.Logger
	current atomic.Pointer[tls.Certificate]
}

// addCertificate has the manager serve the certificate in the Secret of the namespace.
// Unless somebody else rotates it, every replica keeps one for dnsName and localhost
// there, and its authority in our webhook configurations: whoever writes first wins,
// and all serve what was written.
func addCertificate(mgr manager.Manager, direct client.Client, key client.ObjectKey, rotate bool) (*certificate, error) {
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{key.Namespace: {}},
			Field:      fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the cache of the certificate: %w", err)
	}
	c := &certificate{secrets: secrets, log: mgr.GetLogger().WithName("webhook")}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("add the certificate: %w", err)
	}
	if !rotate {
		return c, nil
	}
	return c, c.addRotator(mgr, direct, key)
}

func (c *certificate) addRotator(mgr manager.Manager, direct client.Client, key client.ObjectKey) (err error) {
	if c.dir, err = os.MkdirTemp("", "ebbtide-certificate-"); err != nil {
		return fmt.Errorf("make a folder for the certificate: %w", err)
	}
	err = rotator.AddRotator(directManager{mgr, direct}, &rotator.CertRotator{
		SecretKey:      key,
		CertDir:        c.dir,
		CAName:         "ebbtide-ca",
		CAOrganization: "ebbtide",
		DNSName:        dnsName(key.Namespace),
		ExtraDNSNames:  []string{"localhost"},
		IsReady:        make(chan struct{}),
		FieldOwner:     "ebbtide-certificate",
		Webhooks: []rotator.WebhookInfo{
			{Name: configurationName, Type: rotator.Mutating},
			{Name: configurationName, Type: rotator.Validating},
		},
	})
	if err != nil {
		return fmt.Errorf("add the rotation of certificates: %w", err)
	}
	return nil
}

// dnsName is the name by which the API server calls our Service.
func dnsName(namespace string) string { return serviceName + "." + namespace + ".svc" }

// directManager is a manager whose client does not wait for its cache to see
// what it has written, because what the rotator writes is not in that cache.
type directManager struct {
	manager.Manager
	client client.Client
}

func (m directManager) GetClient() client.Client { return m.client }

// NeedLeaderElection says that every replica answers requests.
func (c *certificate) NeedLeaderElection() bool { return false }

// Start keeps the certificate up to date until the context ends.
func (c *certificate) Start(ctx context.Context) error {
	defer func() {
		if c.dir != "" {
			_ = os.RemoveAll(c.dir)
		}
	}()
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

// take serves the certificate of the Secret from now on. A Secret without one is
// about to get it; until then the last one is served.
func (c *certificate) take(object any) {
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
	if c.dir == "" {
		return
	}
	// The rotator gives up unless it finds the certificate in a file; it looks at
	// nothing but its name, and nobody reads it.
	if err := os.WriteFile(filepath.Join(c.dir, corev1.TLSCertKey), secret.Data[corev1.TLSCertKey], 0o600); err != nil {
		c.log.Error(err, "The certificate cannot be written to a file")
	}
}

// get is what tls.Config calls for every connection.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := c.current.Load(); pair != nil {
		return pair, nil
	}
	return nil, errors.New("there is no certificate yet")
}
