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
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"ebbtide.dev/ebbtide/internal/sandbox/machine"
)

// CallerName is the common name of the certificate that the API server shows to
// webhooks.
const CallerName = "kube-apiserver-webhook-client"

const (
	// callerCA is the file of that certificate, which is its own authority.
	callerCA = "webhook-client.crt"
	// What the API server shows to kubelets, which is its own authority too.
	kubeletClientCert = "kubelet-client.crt"
	kubeletClientKey  = "kubelet-client.key"
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
// exactly what the chart allows. A real node's is its own.
func identities(manager Account, realNodes []string) map[string]identity {
	all := map[string]identity{
		"admin":                   {"admin", []string{"system:masters"}},
		"kwok":                    {"kwok", []string{"system:masters"}},
		"kube-controller-manager": {"system:kube-controller-manager", nil},
		"kube-scheduler":          {"system:kube-scheduler", nil},
		"manager":                 {manager.User(), manager.Groups()},
	}
	if len(realNodes) > 0 {
		all[proxyUser] = identity{"system:kube-proxy", nil}
	}
	for _, name := range realNodes {
		all[name] = identity{"system:node:" + name, []string{"system:nodes"}}
	}
	return all
}

// credentials are the files by which the components know each other.
type credentials struct {
	dir    string
	tokens map[string]string
}

func (c credentials) path(name string) string { return filepath.Join(c.dir, name) }

// newCredentials writes certificate, service account key and tokens into dir.
func newCredentials(dir string, users map[string]identity) (credentials, error) {
	c := credentials{dir: dir, tokens: map[string]string{}}
	crt, key, err := cert.GenerateSelfSignedCertKey(
		"127.0.0.1", []net.IP{net.ParseIP(machine.ControlAddress), net.ParseIP(apiService)},
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	)
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
	kubeletCrt, kubeletKey, err := selfSigned(pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}})
	if err != nil {
		return c, err
	}
	for name, data := range map[string][]byte{
		"server.crt": crt, "server.key": key, "service-account.key": serviceAccountKey,
		kubeletClientCert: kubeletCrt, kubeletClientKey: kubeletKey,
	} {
		if err := os.WriteFile(c.path(name), data, 0o600); err != nil {
			return c, err
		}
	}
	return c, c.writeTokens(users)
}

// writeCaller writes what the API server shows to webhooks: a certificate that is its
// own authority, and the configuration that has it shown.
func (c credentials) writeCaller() error {
	crt, key, err := selfSigned(pkix.Name{CommonName: CallerName})
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.AuthInfos["*"] = &clientcmdapi.AuthInfo{ClientCertificateData: crt, ClientKeyData: key}
	if err := os.WriteFile(c.path(callerCA), config.AuthInfos["*"].ClientCertificateData, 0o600); err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(*config, c.kubeconfig("webhooks")); err != nil {
		return err
	}
	return os.WriteFile(c.path(admissionConfiguration), fmt.Appendf(nil, admissionText, c.kubeconfig("webhooks")), 0o600)
}

// selfSigned makes a client's certificate that is its own authority.
func selfSigned(subject pkix.Name) (crt, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), keyPEM, err
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
	for name := range c.tokens {
		text, err := c.kubeconfigAt(name, fmt.Sprintf("https://127.0.0.1:%d", port))
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.kubeconfig(name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfigAt is the kubeconfig of an identity that reaches the API server by this URL.
func (c credentials) kubeconfigAt(name, url string) ([]byte, error) {
	ca, err := os.ReadFile(c.path("server.crt"))
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: c.tokens[name]}
	config.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: name}
	config.CurrentContext = "sandbox"
	return clientcmd.Write(*config)
}

func (c credentials) kubeconfig(name string) string { return c.path(name + ".kubeconfig") }
