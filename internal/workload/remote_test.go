package workload

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// leadsTo is a kubeconfig to another address, with a token.
func leadsTo(t *testing.T, address string, trusted *x509.Certificate) []byte {
	t.Helper()
	return written(t, func(c *clientcmdapi.Config) {
		c.Clusters["east"].Server = address
		if trusted != nil {
			c.Clusters["east"].CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Raw})
		}
	})
}

// serve runs a server until the test ends, and returns the kubeconfig for it.
func serve(t *testing.T, answer http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
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
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`,
		http.StatusText(code), code, message)
}

func TestAClusterThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	answers := func(answer http.HandlerFunc) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			_, kubeconfig := serve(t, answer)
			return kubeconfig
		}
	}
	listens := func(serve func(net.Conn)) func(*testing.T) []byte {
		return func(t *testing.T) []byte { return leadsTo(t, listen(t, serve), nil) }
	}
	tests := map[string]struct {
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
			"what answers is not a Kubernetes API server",
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
			answers(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/readyz" {
					_, _ = io.WriteString(w, "ok")
					return
				}
				refuse(w, http.StatusForbidden, "got "+r.Header.Get("Authorization"))
			}),
			"got Bearer (secret)",
		},
		"it is not trusted": {
			func(t *testing.T) []byte {
				server, _ := serve(t, http.NotFound)
				return leadsTo(t, server.URL, nil)
			},
			"tls: failed to verify certificate: x509: certificate signed by unknown authority",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, quick)
			w.start(t)
			kubeconfig := test.kubeconfig(t)
			config, err := parse(kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			c := w.remote(t, "east", kubeconfig)
			if _, err := w.registry.Use(c, user); !errors.Is(err, ErrConnecting) {
				t.Errorf("first use = %v, want that it is being connected", err)
			}
			state := w.awaitReason(t, c, v1alpha1.ReasonUnreachable)
			if want := "connect to " + config.Host + ": "; !strings.HasPrefix(state.Message, want) || !strings.Contains(state.Message, test.want) {
				t.Errorf("state says %q, want %q", state.Message, want+test.want)
			}
			_, err = w.registry.Use(c, user)
			if text := fmt.Sprint(err, state); strings.Contains(text, secretToken) {
				t.Errorf("a secret is told: %s", text)
			}
		})
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
			w := newWorld(t, quick)
			w.start(t)
			if test.data != nil {
				w.secret(t, "east", test.data)
			}
			c := w.named("east", "east")
			if _, err := w.registry.Use(c, user); err == nil {
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
func TestAUserWhoMayNotReadEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start(t)
	read := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"list", "watch"}}
	}
	name, _ := w.User(t, read("", "pods", "nodes", "namespaces", "persistentvolumeclaims", "persistentvolumes"), read("apps", "daemonsets"))
	c := w.remote(t, "east", w.kubeconfig(t, func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		user.Impersonate, user.ImpersonateGroups = name, []string{"system:authenticated"}
	}))
	_, _ = w.registry.Use(c, user)

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

// front leaves to stop what that stops, and hands everything else to the API server,
// as the administrator.
func (w *world) front(t *testing.T, stop func(http.ResponseWriter, *http.Request) (stopped bool)) (*httptest.Server, []byte) {
	t.Helper()
	behind, err := url.Parse(w.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind); r.Out.Header.Del("Authorization") },
	}
	return serve(t, func(writer http.ResponseWriter, r *http.Request) {
		if !stop(writer, r) {
			proxy.ServeHTTP(writer, r)
		}
	})
}

func TestCredentialsThatWereRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start(t)
	var valid atomic.Value
	valid.Store(secretToken)
	server, kubeconfig := w.front(t, func(answer http.ResponseWriter, r *http.Request) bool {
		refused := r.Header.Get("Authorization") != "Bearer "+valid.Load().(string)
		if refused {
			http.Error(answer, "Unauthorized", http.StatusUnauthorized)
		}
		return refused
	})
	c := w.remote(t, "east", kubeconfig)
	w.connect(t, c)

	valid.Store("another-token")

	state := w.awaitReason(t, c, v1alpha1.ReasonUnreachable)
	if want := "connect to " + server.URL + ": the credentials in the kubeconfig are refused: 401 Unauthorized"; state.Message != want {
		t.Errorf("state says %q, want %q", state.Message, want)
	}
	rotated := bytes.ReplaceAll(kubeconfig, []byte(secretToken), []byte("another-token"))
	w.secret(t, "east", map[string][]byte{"value": rotated})
	w.connect(t, c)
}

// A watch that is no longer allowed would keep on trying silently.
func TestAPermissionThatIsTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start(t)
	var taken atomic.Bool
	server, kubeconfig := w.front(t, func(answer http.ResponseWriter, r *http.Request) bool {
		refused := taken.Load() && strings.HasSuffix(r.URL.Path, "/pods")
		if refused {
			refuse(answer, http.StatusForbidden, "pods is forbidden")
		}
		return refused
	})
	c := w.remote(t, "east", kubeconfig)
	w.connect(t, c)

	taken.Store(true)
	server.CloseClientConnections()

	cluster.Eventually(t, "what is missing", soon, func(context.Context) (string, bool) {
		state := w.registry.State(client.ObjectKeyFromObject(c))
		return state.Message, strings.HasPrefix(state.Message, "connect to "+server.URL+": ") && strings.HasSuffix(state.Message, "pods is forbidden")
	})
	taken.Store(false)
	w.connect(t, c)
}

func TestAKindThatIsNeverRead(t *testing.T) {
	t.Parallel()
	pace := usualPace
	pace.probe, pace.sync = time.Second, time.Hour
	w := newWorld(t, pace)
	clock := clocktesting.NewFakeClock(time.Now())
	w.registry.clock = clock
	w.start(t)
	server, kubeconfig := w.front(t, func(_ http.ResponseWriter, r *http.Request) bool {
		stopped := strings.HasSuffix(r.URL.Path, "/volumeattachments") && r.URL.Query().Get("limit") != "1"
		if stopped {
			<-r.Context().Done()
		}
		return stopped
	})
	c := w.remote(t, "east", kubeconfig)
	cluster.Eventually(t, "what it waits for", soon, func(context.Context) (string, bool) {
		clock.Step(pace.probe)
		_, err := w.registry.Use(c, user)
		return fmt.Sprint(err), err != nil && strings.HasSuffix(err.Error(), "reading VolumeAttachment")
	})

	clock.Step(pace.sync)

	state := w.awaitReason(t, c, v1alpha1.ReasonUnreachable)
	if want := "connect to " + server.URL + ": could not read VolumeAttachment within 1h0m0s"; state.Message != want {
		t.Errorf("state says %q, want %q", state.Message, want)
	}
}

// Attempts get rarer, up to one in 15 seconds.
func TestAttemptsGetRarer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usualPace)
	clock := clocktesting.NewFakeClock(time.Now())
	w.registry.clock = clock
	w.start(t)
	var attempts atomic.Int32
	_, kubeconfig := serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		attempts.Add(1)
		http.Error(answer, "down", http.StatusServiceUnavailable)
	})
	_, _ = w.registry.Use(w.remote(t, "east", kubeconfig), user)
	for attempt := range int32(8) {
		cluster.Eventually(t, "the next attempt, and that it waits", soon, func(context.Context) (string, bool) {
			return fmt.Sprintf("%d attempts", attempts.Load()), attempts.Load() == attempt+1 && clock.HasWaiters()
		})
		if attempt > 4 {
			clock.Step(9 * time.Second)
			if got := attempts.Load(); got != attempt+1 {
				t.Fatalf("attempt %d after 9 seconds, want none in 10 seconds", got)
			}
		}
		clock.Step(15 * time.Second)
	}
}

// Nothing is left of a connection that has ended.
func TestAConnectionLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start(t)
	c := w.remote(t, "east", w.kubeconfig(t, same))
	label := w.namespace + "-left"
	pprof.Do(t.Context(), pprof.Labels("connection", label), func(context.Context) { w.connect(t, c) })
	if running(t, label) == 0 {
		t.Fatal("no goroutine of the connection is found")
	}

	w.registry.Release(client.ObjectKeyFromObject(c), user)

	cluster.Eventually(t, "the end of all goroutines", soon, func(context.Context) (string, bool) {
		left := running(t, label)
		return fmt.Sprintf("%d stacks", left), left == 0
	})
}

// running counts the stacks of goroutines that come of one with the label.
func running(t *testing.T, label string) int {
	t.Helper()
	var stacks bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
		t.Fatal(err)
	}
	return strings.Count(stacks.String(), label)
}
