package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

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
			before := shown(t)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: secretName}}
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			story.harm(secret)
			if err := c.Client.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			cluster.Eventually(t, "another certificate that lasts", 30*time.Second, func(context.Context) (string, bool) {
				now := shown(t)
				return fmt.Sprintf("until %s", now.NotAfter), !now.Equal(before) && time.Until(now.NotAfter) > 300*24*time.Hour
			})
			awaitCalled(t, c)
		})
	}
}

// The last certificate is shown until there is a Secret again.
func TestASecretThatIsCreatedAgainIsFilled(t *testing.T) {
	c := newAPI(t)
	before := shown(t)
	named := metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: secretName}
	must(t, c.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: named}))
	awaitCalled(t, c)
	must(t, c.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: named}))
	cluster.Eventually(t, "another certificate", 30*time.Second, func(context.Context) (string, bool) {
		return "the same certificate", !shown(t).Equal(before)
	})
	awaitCalled(t, c)
}

// Whoever applies the chart again takes the authority out of the configurations.
func TestAnAuthorityThatIsTakenOutComesBack(t *testing.T) {
	c := newAPI(t)
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: configurationName}
	must(t, c.Client.Get(t.Context(), key, mutating))
	must(t, c.Client.Get(t.Context(), key, validating))
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = nil
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = nil
	}
	must(t, c.Client.Update(t.Context(), mutating))
	must(t, c.Client.Update(t.Context(), validating))
	awaitCalled(t, c)
}

// awaitCalled waits until we say that we are ready and the API server agrees.
func awaitCalled(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ready := &readiness{reader: c.Client, address: started.address, dnsName: dnsName(cluster.Account.Namespace)}
	cluster.Eventually(t, "the webhooks to be ready and called", 30*time.Second, func(ctx context.Context) (string, bool) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil)
		if err == nil {
			err = ready.check(request)
		}
		if err == nil {
			err = c.Client.Create(ctx, maintenanceOf("probe", "nobody"), client.DryRunAll)
		}
		return fmt.Sprint(err), err == nil
	})
}

// shown is the certificate that the server shows.
func shown(t *testing.T) *x509.Certificate {
	t.Helper()
	connection, err := tls.Dial("tcp", started.address, &tls.Config{InsecureSkipVerify: true})
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
