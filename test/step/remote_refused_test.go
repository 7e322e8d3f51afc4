package step

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/step/remote"
)

// leadsTo is a kubeconfig to another address, with a token.
func leadsTo(t *testing.T, address string, trusted *x509.Certificate) []byte {
	t.Helper()
	return remote.Kubeconfig(t, func(c *clientcmdapi.Config) {
		c.Clusters["east"].Server = address
		if trusted != nil {
			c.Clusters["east"].CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Raw})
		}
	})
}

// serve runs a server until the test ends, and returns the kubeconfig for it.
func serve(t *testing.T, answer http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	return serveBy(t, nil, answer)
}

// serveBy is serve by HTTP/2, or only by HTTP/1 with somebody who is told of the connections.
func serveBy(t *testing.T, told func(net.Conn, http.ConnState), answer http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.Config.ErrorLog, server.Config.ConnState = log.New(io.Discard, "", 0), told
	server.EnableHTTP2 = told == nil
	server.StartTLS()
	t.Cleanup(func() { _ = server.Config.Close() })
	return server, leadsTo(t, server.URL, server.Certificate())
}

// listen returns the address of a listener that does this with a connection.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(connection)
		}
	}()
	return "https://" + listener.Addr().String()
}

// refuse answers as an API server does.
func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReason(http.StatusText(code)), Code: int32(code), Message: message,
	})
}

func answers(answer http.HandlerFunc) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		_, kubeconfig := serve(t, answer)
		return kubeconfig
	}
}

// refusesAll is ready, and refuses every other request in words that may repeat the token.
func refusesAll(words func(token string) string) func(*testing.T) []byte {
	return answers(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			_, _ = io.WriteString(w, "ok")
			return
		}
		refuse(w, http.StatusForbidden, words(r.Header.Get("Authorization")))
	})
}

func listens(serve func(net.Conn)) func(*testing.T) []byte {
	return func(t *testing.T) []byte { return leadsTo(t, listen(t, serve), nil) }
}

// unusable are kubeconfigs that lead nowhere, and what is said of that.
var unusable = map[string]struct {
	kubeconfig func(*testing.T) []byte
	want       string
}{
	"nobody listens": {
		func(t *testing.T) []byte {
			server, kubeconfig := serve(t, http.NotFound)
			server.Close()
			return kubeconfig
		},
		"connect: connection refused",
	},
	"it never answers": {
		listens(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
		"no answer in time",
	},
	"it hangs up": {
		listens(func(c net.Conn) { _ = c.Close() }),
		"",
	},
	"it talks something else": {
		listens(func(c net.Conn) { _, _ = io.WriteString(c, "220 ready for mail\r\n"); _, _ = io.Copy(io.Discard, c) }),
		"tls: first record does not look like a TLS handshake",
	},
	"it is a web page": {
		answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Welcome!</html>") }),
		"the server is not a Kubernetes API server",
	},
	"it sends us elsewhere": {
		answers(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1/", http.StatusFound)
		}),
		"the API server is not ready: 302 Found",
	},
	"it is not ready": {
		answers(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "etcd failed", http.StatusInternalServerError)
		}),
		"the API server is not ready: 500 Internal Server Error",
	},
	"it does not know us": {
		answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who?", http.StatusUnauthorized) }),
		"the credentials in the kubeconfig are refused: 401 Unauthorized",
	},
	"it lets us do nothing": {
		answers(func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusForbidden, "you are nobody") }),
		"you are nobody",
	},
	"it shows everybody what we send": {
		refusesAll(func(token string) string { return "got " + token }),
		"got Bearer (secret)",
	},
	"it writes to our terminal": {
		refusesAll(func(token string) string { return "got \u001b[2J\u202e" + token + "\u0007 and more" }),
		"got [2J Bearer (secret) and more",
	},
	"it says more than anybody reads": {
		refusesAll(func(string) string { return strings.Repeat("x", 30<<10) }),
		strings.Repeat("x", 400),
	},
	"it is not trusted": {
		func(t *testing.T) []byte {
			server, _ := serve(t, http.NotFound)
			return leadsTo(t, server.URL, nil)
		},
		"tls: failed to verify certificate: x509: certificate signed by unknown authority",
	},
}

func TestAClusterThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, test := range unusable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kubeconfig := test.kubeconfig(t)
			config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			cannotBeUsed(t, kubeconfig, "connect to "+config.Host+": ", test.want)
		})
	}
}

// longest is how many bytes of what a cluster says are shown.
const longest = 500

// cannotBeUsed fails unless a cluster is told to be unreachable in these words.
func cannotBeUsed(t *testing.T, kubeconfig []byte, begins, holds string) {
	t.Helper()
	w := startRemotes(t, workload.Options{Pace: &quick})
	c := w.remote(t, "east", kubeconfig)
	if _, err := w.registry.Use(c, usingMachine); !errors.Is(err, workload.ErrConnecting) {
		t.Errorf("first use = %v, want that it is being connected", err)
	}
	state := w.awaitReason(t, c, v1alpha1.ReasonUnreachable)
	if !strings.HasPrefix(state.Message, begins) || !strings.Contains(state.Message, holds) {
		t.Errorf("state says %q, want %q", state.Message, begins+holds)
	}
	if len(state.Message) > 2*longest || strings.ContainsFunc(state.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("state says %q, want at most %d bytes that can be printed", state.Message, 2*longest)
	}
	_, err := w.registry.Use(c, usingMachine)
	if text := fmt.Sprint(err, state); strings.Contains(text, remote.Token) {
		t.Errorf("a secret is told: %s", text)
	}
}

func TestASecretThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		data map[string][]byte
		want string
	}{
		"missing":        {nil, "Secret %s/east does not exist"},
		"without key":    {map[string][]byte{"kubeconfig": []byte("x")}, "Secret %s/east: key value is missing or empty"},
		"with empty key": {map[string][]byte{"value": {}}, "Secret %s/east: key value is missing or empty"},
		"malformed":      {map[string][]byte{"value": []byte("{")}, "Secret %s/east, key value: kubeconfig does not parse: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startRemotes(t, workload.Options{Pace: &quick})
			if test.data != nil {
				w.secret(t, "east", test.data)
			}
			c := w.named("east", "east")
			if _, err := w.registry.Use(c, usingMachine); err == nil {
				t.Fatal("it is connected")
			}
			state := w.awaitReason(t, c, v1alpha1.ReasonUnreachable)
			if want := fmt.Sprintf(test.want, w.namespace); !strings.HasPrefix(state.Message, want) {
				t.Errorf("state says %q, want %q", state.Message, want)
			}

			w.secret(t, "east", map[string][]byte{"value": w.kubeconfig(t, same)})
			w.connect(t, c)
		})
	}
}

// All permissions that are missing are told at once.
func TestUserWithoutAllReadRights(t *testing.T) {
	t.Parallel()
	w := startRemotes(t, workload.Options{Pace: &quick})
	read := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"list", "watch"}}
	}
	name, _ := w.User(t, read("", "pods", "nodes", "namespaces", "persistentvolumeclaims", "persistentvolumes"), read("apps", "daemonsets"))
	c := w.remote(t, "east", w.kubeconfig(t, func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		user.Impersonate, user.ImpersonateGroups = name, []string{"system:authenticated"}
	}))
	_, _ = w.registry.Use(c, usingMachine)

	state := w.awaitReason(t, c, v1alpha1.ReasonUnreachable)

	for _, resource := range []string{
		`cannot list resource "poddisruptionbudgets" in API group "policy" at the cluster scope`,
		`cannot list resource "volumeattachments" in API group "storage.k8s.io" at the cluster scope`,
	} {
		if !strings.Contains(state.Message, resource) {
			t.Errorf("state says %q, want it to hold %q", state.Message, resource)
		}
	}
	if strings.Contains(state.Message, `"pods"`) {
		t.Errorf("state says %q, but pods may be read", state.Message)
	}
}
