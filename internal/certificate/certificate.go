// Package certificate creates the certificate of the webhooks, in hooks of the chart: the
// manager itself may not write webhook configurations. The certificate is its own authority.
// Before an install or upgrade the hook adds the new certificate to the trusted ones and then
// writes the Secret; afterwards it removes the old ones. A run that is killed is completed by
// the next run.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// ConfigurationName is the name of both webhook configurations of the chart.
	ConfigurationName = "ebbtide"
	// SecretName is the name of the Secret that the managers serve.
	SecretName = "ebbtide-webhook-tls"
	// EarlierSecretName is the name of the Secret of charts whose managers made the certificate.
	EarlierSecretName = "ebbtide-webhook-certificate"

	serviceName = "ebbtide-webhook"
	// authorityKey is the key of the authority in a Secret, as cert-manager names it.
	authorityKey = corev1.ServiceAccountRootCAKey
	// years is the validity of a certificate. It is renewed in the second half.
	years = 2
)

// DNSName returns the name by which the API server calls the Service of the webhooks.
func DNSName(namespace string) string { return serviceName + "." + namespace + ".svc" }

// names returns the names that the certificate must have. The sandbox calls localhost.
func names(namespace string) []string { return []string{DNSName(namespace), "localhost"} }

// issue returns the data of a Secret with a new certificate.
func issue(names []string, now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generate the serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: serviceName}, DNSNames: names,
		// The clock of an API server may be behind.
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(years, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	crt := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
	return map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: keyPEM, authorityKey: crt}, nil
}

// check returns why a new certificate must replace the one in the data of a Secret, or nil.
func check(data map[string][]byte, names []string, now time.Time) error {
	if len(data[corev1.TLSCertKey]) == 0 {
		return errors.New("there is none")
	}
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return err
	}
	leaf := pair.Leaf
	if half := leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2); now.After(half) {
		return fmt.Errorf("it is valid until %s, which is less than half of its time", leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	authority, above := x509.NewCertPool(), x509.NewCertPool()
	if !authority.AppendCertsFromPEM(data[authorityKey]) {
		return errors.New(authorityKey + " has no certificate")
	}
	above.AppendCertsFromPEM(data[corev1.TLSCertKey])
	for _, name := range names {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: authority, Intermediates: above, CurrentTime: now}); err != nil {
			return err
		}
	}
	return nil
}
