package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// What the chart calls the webhook configurations and the Secret of the certificate.
const (
	configurationName = "ebbtide"
	secretName        = "ebbtide-webhook-certificate"
)

// dnsName is how the API server calls our Service.
func dnsName(namespace string) string { return "ebbtide-webhook." + namespace + ".svc" }

// The certificate comes from an empty Secret. Whatever happens to it later, the
// server shows a new one, which the API server trusts, and nothing restarts.
func TestACertificateThatIsLostOrExpiresIsReplaced(t *testing.T) {
	c := newAPI(t)
	for _, story := range []struct {
		name string
		harm func(*corev1.Secret)
	}{
		{"its data is wiped", func(s *corev1.Secret) { s.Data = nil }},
		{"it expires in a week", func(s *corev1.Secret) { expireSoon(t, s) }},
		{"its key belongs to another one", func(s *corev1.Secret) { s.Data[corev1.TLSPrivateKeyKey] = s.Data["ca.key"] }},
	} {
		t.Run(story.name, func(t *testing.T) {
			before := shown(t, started.address)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: secretName}}
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			story.harm(secret)
			if err := c.Client.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			patience.Eventually(t, "another certificate that lasts", func(context.Context) (string, bool) {
				now := shown(t, started.address)
				return fmt.Sprintf("until %s", now.NotAfter), !now.Equal(before) && time.Until(now.NotAfter) > 300*24*time.Hour
			})
			awaitCalled(t, c)
		})
	}
}

// The last certificate is shown until there is a Secret again.
func TestASecretThatIsCreatedAgainIsFilled(t *testing.T) {
	c := newAPI(t)
	before := shown(t, started.address)
	named := metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: secretName}
	must(t, c.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: named}))
	awaitCalled(t, c)
	must(t, c.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: named}))
	patience.Eventually(t, "another certificate", func(context.Context) (string, bool) {
		return "the same certificate", !shown(t, started.address).Equal(before)
	})
	awaitCalled(t, c)
}

// Whoever applies the chart again takes the authority out of the configurations.
func TestAnAuthorityThatIsTakenOutComesBack(t *testing.T) {
	c := newAPI(t)
	trust(t, c, nil)
	awaitCalled(t, c)
}

// Where somebody else rotates certificates, the one of the Secret is shown, also a later
// one, and nothing is written: neither to the Secret nor to the configurations.
func TestTheCertificateOfSomebodyElseIsShown(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true, Audit: true})
	address := serve(t, c, false)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: secretName}}
	must(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	for range 2 {
		theirs := issue(t, c, secret)
		patience.Eventually(t, "the certificate of the Secret", func(context.Context) (string, bool) {
			connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				return err.Error(), false
			}
			defer func() { _ = connection.Close() }()
			now := connection.ConnectionState().PeerCertificates[0]
			return now.Subject.String(), now.Equal(theirs)
		})
		awaitAnswer(t, c)
	}
	version := secret.ResourceVersion
	must(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	if secret.ResourceVersion != version {
		t.Errorf("the Secret was written by the manager, as %v say", secret.ManagedFields)
	}
}

// issue fills the Secret and the configurations as cert-manager does.
func issue(t *testing.T, c *cluster.Cluster, secret *corev1.Secret) *x509.Certificate {
	t.Helper()
	crt, key, err := cert.GenerateSelfSignedCertKey(dnsName(secret.Namespace), nil, []string{"localhost"})
	must(t, err)
	secret.Data = map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}
	must(t, c.Client.Update(t.Context(), secret))
	trust(t, c, crt)
	pair, err := tls.X509KeyPair(crt, key)
	must(t, err)
	return pair.Leaf
}

// trust makes an authority that of our configurations.
func trust(t *testing.T, c *cluster.Cluster, bundle []byte) {
	t.Helper()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: configurationName}
	must(t, c.Client.Get(t.Context(), key, mutating))
	must(t, c.Client.Get(t.Context(), key, validating))
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	must(t, c.Client.Update(t.Context(), mutating))
	must(t, c.Client.Update(t.Context(), validating))
}

// awaitCalled waits until all our configurations trust the certificate that is shown, and
// the API server has an answer.
func awaitCalled(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	patience.Eventually(t, "the webhooks to be trusted and called", func(ctx context.Context) (string, bool) {
		err := trusted(ctx, c, started.address)
		if err == nil {
			err = c.Client.Create(ctx, sample.Maintenance("probe", "nobody"), client.DryRunAll)
		}
		return fmt.Sprint(err), err == nil
	})
}

// trusted calls a server as the API server does, by the authority of each configuration.
func trusted(ctx context.Context, c *cluster.Cluster, address string) error {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: configurationName}
	if err := errors.Join(c.Client.Get(ctx, key, mutating), c.Client.Get(ctx, key, validating)); err != nil {
		return err
	}
	bundles := map[string]bool{}
	for _, hook := range mutating.Webhooks {
		bundles[string(hook.ClientConfig.CABundle)] = true
	}
	for _, hook := range validating.Webhooks {
		bundles[string(hook.ClientConfig.CABundle)] = true
	}
	for bundle := range bundles {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(bundle))
		dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: dnsName(cluster.Account.Namespace)}}
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		if err := connection.Close(); err != nil {
			return err
		}
	}
	return nil
}

// shown is the certificate that the server at an address shows.
func shown(t *testing.T, address string) *x509.Certificate {
	t.Helper()
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatalf("call the webhook server: %v", err)
	}
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0]
}

// expireSoon signs the server's certificate once more, for a week only.
func expireSoon(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	authority, err := tls.X509KeyPair(secret.Data["ca.crt"], secret.Data["ca.key"])
	if err != nil {
		t.Fatal(err)
	}
	server, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	short := *server.Leaf
	short.NotAfter = time.Now().Add(7 * 24 * time.Hour)
	der, err := x509.CreateCertificate(nil, &short, authority.Leaf, server.Leaf.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	secret.Data[corev1.TLSCertKey] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
