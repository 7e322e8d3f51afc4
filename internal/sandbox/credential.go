package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/csv"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// CallerName is the common name of the certificate that the API server shows to
// webhooks.
const CallerName = "kube-apiserver-webhook-client"

const (
	// callerCA is the file of that certificate, which is its own authority.
	callerCA = "webhook-client.crt"
	// admissionConfiguration is the file that has the API server show it.
	admissionConfiguration = "admission.yaml"
	admissionText          = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: &webhooks
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %q
- name: ValidatingAdmissionWebhook
  configuration: *webhooks
`
)

// identity is a user of the API server, known by a token.
type identity struct {
	user   string
	groups []string
}

// identities are the users of a sandbox, by the name of their kubeconfig. The
// manager has the name that its ServiceAccount would have, so that it may do
// exactly what the chart allows.
func identities(manager Account) map[string]identity {
	return map[string]identity{
		"admin":                   {"admin", []string{"system:masters"}},
		"kwok":                    {"kwok", []string{"system:masters"}},
		"kube-controller-manager": {"system:kube-controller-manager", nil},
		"kube-scheduler":          {"system:kube-scheduler", nil},
		"manager":                 {manager.User(), manager.Groups()},
	}
}

// credentials are the files by which the components know each other.
type credentials struct {
	dir    string
	tokens map[string]string
}

func (c credentials) path(name string) string { return filepath.Join(c.dir, name) }

// newCredentials writes certificate, service account key and tokens into dir.
func newCredentials(dir string, manager Account) (credentials, error) {
	c := credentials{dir: dir, tokens: map[string]string{}}
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, []string{"localhost"})
	if err != nil {
		return c, err
	}
	serviceAccountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return c, err
	}
	if err := c.writeCaller(); err != nil {
		return c, err
	}
	for name, data := range map[string][]byte{
		"server.crt": crt, "server.key": key, "service-account.key": serviceAccountKey,
	} {
		if err := os.WriteFile(c.path(name), data, 0o600); err != nil {
			return c, err
		}
	}
	return c, c.writeTokens(identities(manager))
}

// writeCaller writes what the API server shows to webhooks: a certificate that is its
// own authority, and the configuration that has it shown.
func (c credentials) writeCaller() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: CallerName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.AuthInfos["*"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), ClientKeyData: keyPEM,
	}
	if err := os.WriteFile(c.path(callerCA), config.AuthInfos["*"].ClientCertificateData, 0o600); err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(*config, c.kubeconfig("webhooks")); err != nil {
		return err
	}
	return os.WriteFile(c.path(admissionConfiguration), fmt.Appendf(nil, admissionText, c.kubeconfig("webhooks")), 0o600)
}

func (c credentials) writeTokens(users map[string]identity) error {
	f, err := os.OpenFile(c.path("tokens.csv"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	for name, id := range users {
		c.tokens[name] = rand.Text()
		if err := w.Write([]string{c.tokens[name], id.user, name, strings.Join(id.groups, ",")}); err != nil {
			return err
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return f.Close()
}

// writeKubeconfigs writes one kubeconfig per identity, <name>.kubeconfig.
func (c credentials) writeKubeconfigs(port int) error {
	ca, err := os.ReadFile(c.path("server.crt"))
	if err != nil {
		return err
	}
	for name, token := range c.tokens {
		config := clientcmdapi.NewConfig()
		config.Clusters["sandbox"] = &clientcmdapi.Cluster{
			Server:                   fmt.Sprintf("https://127.0.0.1:%d", port),
			CertificateAuthorityData: ca,
		}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
		config.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: name}
		config.CurrentContext = "sandbox"
		if err := clientcmd.WriteToFile(*config, c.kubeconfig(name)); err != nil {
			return err
		}
	}
	return nil
}

func (c credentials) kubeconfig(name string) string { return c.path(name + ".kubeconfig") }
