package step

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/step/remote"
)

// front leaves to stop what that stops, and hands everything else to the API server,
// as the administrator.
func (w *remotes) front(t *testing.T, stop func(http.ResponseWriter, *http.Request) (stopped bool)) (*httptest.Server, []byte) {
	t.Helper()
	return serve(t, w.behind(t, stop))
}

// behind is what the server of front does.
func (w *remotes) behind(t *testing.T, stop func(http.ResponseWriter, *http.Request) (stopped bool)) http.HandlerFunc {
	t.Helper()
	proxy := w.proxy(t)
	return func(writer http.ResponseWriter, r *http.Request) {
		if !stop(writer, r) {
			proxy.ServeHTTP(writer, r)
		}
	}
}

// proxy hands everything to the API server, as the administrator.
func (w *remotes) proxy(t *testing.T) *httputil.ReverseProxy {
	t.Helper()
	behind, err := url.Parse(w.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind); r.Out.Header.Del("Authorization") },
	}
}

func TestCredentialsThatWereRotated(t *testing.T) {
	t.Parallel()
	w := newRemotes(t, workload.Options{Pace: &quick})
	w.start(t)
	var valid atomic.Value
	valid.Store(remote.Token)
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
	rotated := bytes.ReplaceAll(kubeconfig, []byte(remote.Token), []byte("another-token"))
	w.secret(t, "east", map[string][]byte{"value": rotated})
	w.connect(t, c)
}

// A watch that is no longer allowed would keep on trying silently.
func TestAPermissionThatIsTakenAway(t *testing.T) {
	t.Parallel()
	w := newRemotes(t, workload.Options{Pace: &quick})
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

	patience.Eventually(t, "what is missing", func(context.Context) (string, bool) {
		state := w.registry.State(client.ObjectKeyFromObject(c))
		return state.Message, strings.HasPrefix(state.Message, "connect to "+server.URL+": ") && strings.HasSuffix(state.Message, "pods is forbidden")
	})
	taken.Store(false)
	w.connect(t, c)
}

// The cluster answers, but what is known of its pods gets older and older.
func TestAWatchThatKeepsFailing(t *testing.T) {
	t.Parallel()
	pace := quick
	pace.Stale = time.Second
	w := newRemotes(t, workload.Options{Pace: &pace})
	w.start(t)
	var failing atomic.Bool
	server, kubeconfig := w.front(t, func(answer http.ResponseWriter, r *http.Request) bool {
		stopped := failing.Load() && strings.HasSuffix(r.URL.Path, "/pods")
		if stopped {
			refuse(answer, http.StatusInternalServerError, "etcd has lost its pods")
		}
		return stopped
	})
	c := w.remote(t, "east", kubeconfig)
	w.connect(t, c)

	failing.Store(true)
	server.CloseClientConnections()

	patience.Eventually(t, "why it cannot be used", func(context.Context) (string, bool) {
		state := w.registry.State(client.ObjectKeyFromObject(c))
		return state.Reason + state.Message, state.Reason == v1alpha1.ReasonUnreachable && strings.HasSuffix(state.Message, "etcd has lost its pods")
	})
	failing.Store(false)
	w.connect(t, c)
}

func TestAKindThatIsNeverRead(t *testing.T) {
	t.Parallel()
	pace, clock := workload.UsualPace(), clocktesting.NewFakeClock(time.Now())
	pace.Probe, pace.Sync = time.Second, time.Hour
	w := newRemotes(t, workload.Options{Pace: &pace, Clock: clock})
	w.start(t)
	server, kubeconfig := w.front(t, func(_ http.ResponseWriter, r *http.Request) bool {
		stopped := strings.HasSuffix(r.URL.Path, "/volumeattachments") && r.URL.Query().Get("limit") != "1"
		if stopped {
			<-r.Context().Done()
		}
		return stopped
	})
	c := w.remote(t, "east", kubeconfig)
	patience.Eventually(t, "what it waits for", func(context.Context) (string, bool) {
		clock.Step(pace.Probe)
		_, err := w.registry.Use(c, usingMachine)
		return fmt.Sprint(err), err != nil && strings.HasSuffix(err.Error(), "reading VolumeAttachment")
	})

	clock.Step(pace.Sync)

	state := w.awaitReason(t, c, v1alpha1.ReasonUnreachable)
	if want := "connect to " + server.URL + ": could not read VolumeAttachment within 1h0m0s"; state.Message != want {
		t.Errorf("state says %q, want %q", state.Message, want)
	}
}

// Attempts get rarer, up to one in 15 seconds.
func TestAttemptsGetRarer(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Now())
	w := newRemotes(t, workload.Options{Clock: clock})
	w.start(t)
	var attempts atomic.Int32
	_, kubeconfig := serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		attempts.Add(1)
		http.Error(answer, "down", http.StatusServiceUnavailable)
	})
	_, _ = w.registry.Use(w.remote(t, "east", kubeconfig), usingMachine)
	for attempt := range int32(8) {
		patience.Eventually(t, "the next attempt, and that it waits", func(context.Context) (string, bool) {
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
	w := newRemotes(t, workload.Options{Pace: &quick})
	w.start(t)
	c := w.remote(t, "east", w.kubeconfig(t, same))
	label := w.namespace + "-left"
	pprof.Do(t.Context(), pprof.Labels("connection", label), func(context.Context) { w.connect(t, c) })
	if running(t, label) == 0 {
		t.Fatal("no goroutine of the connection is found")
	}

	w.registry.Release(client.ObjectKeyFromObject(c), usingMachine)

	patience.Eventually(t, "the end of all goroutines", func(context.Context) (string, bool) {
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

// A cluster that cannot stream its lists would answer at once with all that it has.
func TestAListIsReadPageByPage(t *testing.T) {
	t.Parallel()
	w := newRemotes(t, workload.Options{Pace: &quick})
	w.start(t)
	asked := make(chan url.Values, 1000)
	_, kubeconfig := w.front(t, func(answer http.ResponseWriter, r *http.Request) bool {
		query := r.URL.Query()
		if query.Get("sendInitialEvents") != "" {
			listsOnly(nil)(answer, r)
			return true
		}
		if query.Get("watch") == "" && query.Get("limit") != "1" && r.URL.Path == "/api/v1/namespaces" {
			asked <- query
		}
		return false
	})
	w.connect(t, w.remote(t, "east", kubeconfig))

	query := <-asked
	if query.Get("limit") != "100" || query.Has("resourceVersion") {
		t.Errorf("asked for %s, want pages of 100 and no version for which clusters give no pages", query.Encode())
	}
}
