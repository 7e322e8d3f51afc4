package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"

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
	secretName        = "ebbtide-webhook-tls"
)

// dnsName is how the API server calls our Service.
func dnsName(namespace string) string { return "ebbtide-webhook." + namespace + ".svc" }

// secretOf is the Secret of the certificate.
func secretOf(t *testing.T, c *cluster.Cluster) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	must(t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster.Account.Namespace, Name: secretName}, secret))
	return secret
}

// The certificate of the Secret is shown, whoever has put it there, such as cert-manager, and
// so is a later one. While there is no Secret, or what is in it is broken, the last one is.
func TestCertificateInTheSecretIsServed(t *testing.T) {
	c := newAPI(t)
	first := secretOf(t, c)
	for range 2 {
		theirs := issue(t, c, secretOf(t, c))
		awaitShown(t, theirs)
		awaitCalled(t, c)
	}
	last := shown(t, started.address)
	broken := secretOf(t, c)
	broken.Data[corev1.TLSPrivateKeyKey] = first.Data[corev1.TLSPrivateKeyKey]
	must(t, c.Client.Update(t.Context(), broken))
	must(t, c.Client.Delete(t.Context(), broken))
	awaitCalled(t, c)
	if now := shown(t, started.address); !now.Equal(last) {
		t.Errorf("without a Secret %s is shown, want the last certificate", now.Subject)
	}

	first.ObjectMeta = metav1.ObjectMeta{Namespace: first.Namespace, Name: first.Name}
	must(t, c.Client.Create(t.Context(), first))
	trust(t, c, first.Data["ca.crt"])
	awaitShown(t, leafOf(t, first))
	awaitCalled(t, c)
}

func awaitShown(t *testing.T, want *x509.Certificate) {
	t.Helper()
	patience.Eventually(t, "the certificate of the Secret", func(context.Context) (string, bool) {
		now := shown(t, started.address)
		return now.Subject.String(), now.Equal(want)
	})
}

// issue fills the Secret and the configurations as cert-manager does.
func issue(t *testing.T, c *cluster.Cluster, secret *corev1.Secret) *x509.Certificate {
	t.Helper()
	crt, key, err := cert.GenerateSelfSignedCertKey(dnsName(secret.Namespace), nil, []string{"localhost"})
	must(t, err)
	secret.Data = map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}
	must(t, c.Client.Update(t.Context(), secret))
	trust(t, c, crt)
	return leafOf(t, secret)
}

// trust makes an authority that of our configurations.
func trust(t *testing.T, c *cluster.Cluster, bundle []byte) {
	t.Helper()
	mutating, validating := configurations(t, c)
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	must(t, c.Client.Update(t.Context(), mutating))
	must(t, c.Client.Update(t.Context(), validating))
}

func configurations(t *testing.T, c *cluster.Cluster) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: configurationName}
	must(t, errors.Join(c.Client.Get(t.Context(), key, mutating), c.Client.Get(t.Context(), key, validating)))
	return mutating, validating
}

// bundles are the different authorities that our webhooks trust.
func bundles(t *testing.T, c *cluster.Cluster) map[string]bool {
	t.Helper()
	mutating, validating := configurations(t, c)
	found := map[string]bool{}
	for _, hook := range mutating.Webhooks {
		found[string(hook.ClientConfig.CABundle)] = true
	}
	for _, hook := range validating.Webhooks {
		found[string(hook.ClientConfig.CABundle)] = true
	}
	return found
}

// awaitCalled waits until all our configurations trust the certificate that is shown, and
// the API server has an answer.
func awaitCalled(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	patience.Eventually(t, "the webhooks to be trusted and called", func(ctx context.Context) (string, bool) {
		err := trusted(bundles(t, c), shown(t, started.address))
		if err == nil {
			err = c.Client.Create(ctx, sample.Maintenance("probe", "nobody"), client.DryRunAll)
		}
		return fmt.Sprint(err), err == nil
	})
}

// trusted verifies a certificate as the API server does, by the authority of each webhook.
func trusted(bundles map[string]bool, leaf *x509.Certificate) error {
	for bundle := range bundles {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(bundle))
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: dnsName(cluster.Account.Namespace)}); err != nil {
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
