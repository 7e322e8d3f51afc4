package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/certificate"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// hookAccount is the client of the account of the hook, once it has its rights.
func hookAccount(t *testing.T, c *cluster.Cluster) client.Client {
	t.Helper()
	account := c.As(t, "ebbtide-certificate")
	patience.Eventually(t, "the rights of the hook", func(ctx context.Context) (string, bool) {
		err := errors.Join(
			account.Get(ctx, client.ObjectKey{Namespace: cluster.Account.Namespace, Name: secretName}, &corev1.Secret{}),
			account.Get(ctx, client.ObjectKey{Name: configurationName}, &admissionregistrationv1.MutatingWebhookConfiguration{}))
		return fmt.Sprint(err), err == nil
	})
	return account
}

func run(t *testing.T, as client.Client, now time.Time, phase certificate.Phase) error {
	t.Helper()
	hook := certificate.Hook{Client: as, Namespace: cluster.Account.Namespace, Now: func() time.Time { return now }, Out: &bytes.Buffer{}}
	return hook.Run(t.Context(), phase)
}

// An upgrade in the second half of the time of a certificate renews it, no other one does. The
// API server calls the webhooks at every point of it.
func TestUpgradeRenewsTheCertificate(t *testing.T) {
	c := newAPI(t)
	account := hookAccount(t, c)
	for months, renewed := range map[int]bool{0: false, 11: false, 13: true} {
		must(t, client.IgnoreNotFound(c.Client.Delete(t.Context(), secretOf(t, c))))
		then := time.Now().AddDate(0, -months, 0)
		must(t, errors.Join(run(t, c.Client, then, certificate.Before), run(t, c.Client, then, certificate.After)))
		awaitShown(t, leafOf(t, secretOf(t, c)))
		awaitCalled(t, c)
		before := secretOf(t, c)

		served := &mortal{Client: account, left: 100, then: func() { awaitCalled(t, c) }}
		must(t, run(t, served, time.Now(), certificate.Before))
		awaitShown(t, leafOf(t, secretOf(t, c)))
		awaitCalled(t, c)
		must(t, run(t, served, time.Now(), certificate.After))
		awaitCalled(t, c)

		if got := !bytes.Equal(before.Data[corev1.TLSCertKey], secretOf(t, c).Data[corev1.TLSCertKey]); got != renewed {
			t.Errorf("after %d months it is renewed: %t, want %t", months, got, renewed)
		}
		if !renewed && served.left != 100 {
			t.Errorf("after %d months %d writes were made", months, 100-served.left)
		}
		assertTrustedAlone(t, c)
	}
}

func leafOf(t *testing.T, secret *corev1.Secret) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	must(t, err)
	return pair.Leaf
}

// A hook that is killed after any of its writes is run again, and ends as if it had not been
// killed: from an installation by an earlier chart, whose managers made the certificate and
// kept the key of its authority. What these serve is trusted until Helm has replaced them.
func TestUpgradeThatIsKilledAfterAnyWriteIsRepeated(t *testing.T) {
	c := newAPI(t)
	account := hookAccount(t, c)
	for n := 0; ; n++ {
		earlier := earlierChart(t, c)
		killed := killedAfter(t, account, n, certificate.Before)
		must(t, trusted(bundles(t, c), earlier))
		must(t, run(t, account, time.Now(), certificate.Before))
		must(t, trusted(bundles(t, c), earlier))
		awaitCalled(t, c)
		assertEarlierManagersKeep(t, c, secretOf(t, c).Data["ca.crt"])

		finished := killedAfter(t, account, n, certificate.After)
		must(t, run(t, account, time.Now(), certificate.After))
		awaitCalled(t, c)
		assertTrustedAlone(t, c)
		if err := trusted(bundles(t, c), earlier); err == nil {
			t.Error("the authority of the earlier chart is still trusted, whose key lay in a Secret")
		}
		if !killed && !finished {
			if n < 4 {
				t.Errorf("it makes only %d writes", n)
			}
			return
		}
	}
}

// killedAfter runs a phase that is killed after so many writes, and returns false if it makes no
// more of them.
func killedAfter(t *testing.T, account client.Client, n int, phase certificate.Phase) bool {
	t.Helper()
	err := run(t, &mortal{Client: account, left: n}, time.Now(), phase)
	if err != nil && !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	return err != nil
}

// earlierChart brings the cluster into the state in which an earlier chart has left it.
func earlierChart(t *testing.T, c *cluster.Cluster) (served *x509.Certificate) {
	t.Helper()
	crt, key, err := cert.GenerateSelfSignedCertKey(dnsName(cluster.Account.Namespace), nil, []string{"localhost"})
	must(t, err)
	must(t, client.IgnoreNotFound(c.Client.Delete(t.Context(), secretOf(t, c))))
	earlier := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: certificate.EarlierSecretName},
		Data:       map[string][]byte{"ca.crt": crt, "ca.key": key, corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key},
	}
	must(t, client.IgnoreNotFound(c.Client.Delete(t.Context(), earlier.DeepCopy())))
	must(t, c.Client.Create(t.Context(), earlier))
	t.Cleanup(func() { _ = c.Client.Delete(context.WithoutCancel(t.Context()), earlier) })
	trust(t, c, crt)
	pair, err := tls.X509KeyPair(crt, key)
	must(t, err)
	return pair.Leaf
}

// assertEarlierManagersKeep wants the Secret of an earlier chart to have the authority, too: its
// managers write all of its ca.crt into the webhooks whenever something else is there.
func assertEarlierManagersKeep(t *testing.T, c *cluster.Cluster, authority []byte) {
	t.Helper()
	secret := &corev1.Secret{}
	must(t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster.Account.Namespace, Name: certificate.EarlierSecretName}, secret))
	if !bytes.Contains(secret.Data["ca.crt"], authority) {
		t.Error("managers of the earlier chart remove the new certificate from the webhooks")
	}
}

// assertTrustedAlone wants the webhooks to trust the certificate of the Secret and nothing
// else, and no key to be left that could sign another one.
func assertTrustedAlone(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	secret := secretOf(t, c)
	found := bundles(t, c)
	if len(found) != 1 || !found[string(secret.Data["ca.crt"])] {
		t.Errorf("the webhooks trust %d authorities, want that of the Secret", len(found))
	}
	if leaf := leafOf(t, secret); leaf.IsCA || len(secret.Data) != 3 || secret.Type != corev1.SecretTypeTLS {
		t.Errorf("the Secret of type %s has %d keys, and a certificate that may sign others: %t", secret.Type, len(secret.Data), leaf.IsCA)
	}
}

// The account of the hook reads and writes what it needs and nothing beside it.
func TestHookOfTheCertificateMayDoNothingElse(t *testing.T) {
	c := newAPI(t)
	account := hookAccount(t, c)
	other := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "another"}}
	for attempt, err := range map[string]error{
		"list Secrets":         account.List(t.Context(), &corev1.SecretList{}, client.InNamespace(cluster.Account.Namespace)),
		"read another Secret":  account.Get(t.Context(), client.ObjectKey{Namespace: cluster.Account.Namespace, Name: "another"}, &corev1.Secret{}),
		"delete the Secret":    account.Delete(t.Context(), secretOf(t, c), client.DryRunAll),
		"create webhooks":      account.Create(t.Context(), other.DeepCopy(), client.DryRunAll),
		"update other ones":    account.Update(t.Context(), other.DeepCopy(), client.DryRunAll),
		"read other ones":      account.Get(t.Context(), client.ObjectKeyFromObject(other), other.DeepCopy()),
		"Secrets of elsewhere": account.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "any"}}, client.DryRunAll),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("may %s: %v, want it forbidden", attempt, err)
		}
	}
}

// mortal is a client that is killed after so many writes, and does something after each.
type mortal struct {
	client.Client
	left int
	then func()
}

var errKilled = errors.New("killed")

func (m *mortal) write(do func() error) error {
	if m.left == 0 {
		return errKilled
	}
	m.left--
	err := do()
	if m.then != nil {
		m.then()
	}
	return err
}

func (m *mortal) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return m.write(func() error { return m.Client.Create(ctx, object, options...) })
}

func (m *mortal) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return m.write(func() error { return m.Client.Update(ctx, object, options...) })
}
