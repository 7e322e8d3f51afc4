package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"ebbtide.dev/ebbtide/internal/workload/guard"
	"ebbtide.dev/ebbtide/test/step/remote"
)

// refusals holds kubeconfigs that are refused, with the error.
var refusals = map[string]struct {
	content func(*testing.T) []byte
	want    string
}{
	"not a kubeconfig": {
		content: raw("{" + remote.Token),
		want:    "kubeconfig does not parse: yaml: line 1: did not find expected ... or ...",
	},
	"a token that is none of YAML": {
		content: raw("users: [{name: admin, user: {token: *" + remote.Token + "}}]"),
		want:    "kubeconfig does not parse: yaml: unknown anchor ... referenced",
	},
	"another kind": {
		content: raw("{apiVersion: v1, kind: Pod}"),
		want:    `kubeconfig does not parse: no kind ... is registered for version ... in scheme ...`,
	},
	"no context": {
		content: changed(func(c *clientcmdapi.Config) { c.CurrentContext = "" }),
		want:    `kubeconfig: current-context "" does not exist`,
	},
	"a context that does not exist": {
		content: changed(func(c *clientcmdapi.Config) { c.CurrentContext = "west" }),
		want:    `kubeconfig: current-context "west" does not exist`,
	},
	"a cluster that does not exist": {
		content: changed(func(c *clientcmdapi.Config) { c.Contexts["admin@east"].Cluster = "west" }),
		want:    `kubeconfig: cluster "west" or user "admin" of the current-context does not exist`,
	},
	"a user who does not exist": {
		content: changed(func(c *clientcmdapi.Config) { c.Contexts["admin@east"].AuthInfo = "guest" }),
		want:    `kubeconfig: cluster "east" or user "guest" of the current-context does not exist`,
	},
	"no server": {
		content: changed(func(c *clientcmdapi.Config) { c.Clusters["east"].Server = "" }),
		want:    `kubeconfig: server of cluster "east" must be an address that begins with https://`,
	},
	"a server to which credentials would go in the clear": {
		content: changed(func(c *clientcmdapi.Config) { c.Clusters["east"].Server = "http://east.example" }),
		want:    `kubeconfig: server of cluster "east" must be an address that begins with https://`,
	},
	"a server with credentials": {
		content: changed(func(c *clientcmdapi.Config) {
			c.Clusters["east"].Server = "https://admin:" + remote.Token + "@east.example"
		}),
		want: `kubeconfig: server of cluster "east" must not hold credentials`,
	},
	"a certificate authority in a file": {
		content: changed(func(c *clientcmdapi.Config) { c.Clusters["east"].CertificateAuthority = "/ca.crt" }),
		want:    `kubeconfig: certificate-authority of cluster "east" names a file; use certificate-authority-data`,
	},
	"a certificate authority that is none": {
		content: changed(func(c *clientcmdapi.Config) { c.Clusters["east"].CertificateAuthorityData = []byte(remote.Token) }),
		want:    "kubeconfig cannot be used: unable to load root certificates: unable to parse bytes as PEM block",
	},
	"a command": {
		content: changed(func(c *clientcmdapi.Config) {
			c.AuthInfos["admin"].Exec = &clientcmdapi.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1"}
		}),
		want: `kubeconfig: exec of user "admin" would run a command; use a token or a client certificate`,
	},
	"a provider of credentials": {
		content: changed(func(c *clientcmdapi.Config) {
			c.AuthInfos["admin"].AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		}),
		want: `kubeconfig: auth-provider of user "admin" is not supported; use a token or a client certificate`,
	},
	"files": {
		content: changed(func(c *clientcmdapi.Config) {
			user := c.AuthInfos["admin"]
			user.TokenFile, user.ClientCertificate, user.ClientKey = "/var/run/secrets/token", "/tls.crt", "/tls.key"
		}),
		want: `kubeconfig: tokenFile of user "admin" names a file; use token
kubeconfig: client-certificate of user "admin" names a file; use client-certificate-data
kubeconfig: client-key of user "admin" names a file; use client-key-data`,
	},
	"a proxy": {
		content: changed(func(c *clientcmdapi.Config) { c.Clusters["east"].ProxyURL = "http://me:" + remote.Token + "@10.0.0.1" }),
		want: `kubeconfig: proxy-url of cluster "east" would bypass network policies; ` +
			"allow it with the manager's flag --allow-kubeconfig-fields=proxy-url",
	},
	"a server that is not to be verified": {
		content: changed(func(c *clientcmdapi.Config) { c.Clusters["east"].InsecureSkipTLSVerify = true }),
		want: `kubeconfig: insecure-skip-tls-verify of cluster "east" would expose credentials to any server; use ` +
			"certificate-authority-data, or allow it with the manager's flag --allow-kubeconfig-fields=insecure-skip-tls-verify",
	},
	"a client certificate that is none": {
		content: changed(func(c *clientcmdapi.Config) {
			user := c.AuthInfos["admin"]
			user.ClientCertificateData, user.ClientKeyData = []byte(remote.Token), []byte(remote.Token)
		}),
		want: "kubeconfig cannot be used: tls: failed to find any PEM data in certificate input",
	},
}

func raw(text string) func(*testing.T) []byte {
	return func(*testing.T) []byte { return []byte(text) }
}

func changed(change func(*clientcmdapi.Config)) func(*testing.T) []byte {
	return func(t *testing.T) []byte { return remote.Kubeconfig(t, change) }
}

func TestUnsafeKubeconfigIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := parse(test.content(t), nil)
			if err == nil {
				_, err = guard.New(t.Context(), config, guard.Options{Ledger: guard.NewLedger(DefaultRemoteMemory, DefaultRemotesMemory)})
			}
			if err == nil {
				t.Fatal("the kubeconfig is accepted")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), remote.Token) {
				t.Errorf("the refusal holds a secret: %v", err)
			}
		})
	}
}

// What belongs to other contexts is not used, so it does no harm.
func TestSafeKubeconfigIsAccepted(t *testing.T) {
	t.Parallel()
	config, err := parse(remote.Kubeconfig(t, func(c *clientcmdapi.Config) {
		c.AuthInfos["other"] = &clientcmdapi.AuthInfo{TokenFile: "/token"}
		c.Clusters["east"].TLSServerName = "api.east.example"
		c.Clusters["east"].InsecureSkipTLSVerify = true
		c.Clusters["east"].ProxyURL = "socks5://proxy.example:1080"
	}), Allowances{ProxyURL: true, InsecureSkipTLSVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{config.Host, config.BearerToken, config.BearerTokenFile, config.ServerName, config.Insecure, config.Proxy != nil}
	want := []any{"https://east.example:6443", remote.Token, "", "api.east.example", true, true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}
