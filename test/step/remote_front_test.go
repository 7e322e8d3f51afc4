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
	"strconv"
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

// A watch that is no longer allowed, or that fails while the cluster answers, would leave what is
// known of its pods to get older and older.
func TestAWatchThatKeepsFailingMakesAClusterUnreachable(t *testing.T) {
	t.Parallel()
	impatient := quick
	impatient.Stale = time.Second
	for message, test := range map[string]struct {
		pace workload.Pace
		code int
	}{
		"pods is forbidden":      {quick, http.StatusForbidden},
		"etcd has lost its pods": {impatient, http.StatusInternalServerError},
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			w := startRemotes(t, workload.Options{Pace: &test.pace})
			var failing atomic.Bool
			server, kubeconfig := w.front(t, func(answer http.ResponseWriter, r *http.Request) bool {
				stopped := failing.Load() && strings.HasSuffix(r.URL.Path, "/pods")
				if stopped {
					refuse(answer, test.code, message)
				}
				return stopped
			})
			c := w.remote(t, "east", kubeconfig)
			w.connect(t, c)

			failing.Store(true)
			server.CloseClientConnections()

			patience.Eventually(t, "why it cannot be used", func(context.Context) (string, bool) {
				state := w.registry.State(client.ObjectKeyFromObject(c))
				return state.Reason + state.Message, state.Reason == v1alpha1.ReasonUnreachable &&
					strings.HasPrefix(state.Message, "connect to "+server.URL+": ") && strings.HasSuffix(state.Message, message)
			})
			failing.Store(false)
			w.connect(t, c)
		})
	}
}

func TestAKindThatIsNeverRead(t *testing.T) {
	t.Parallel()
	pace, clock := workload.UsualPace(), clocktesting.NewFakeClock(time.Now())
	pace.Probe, pace.Sync = time.Second, time.Hour
	w := startRemotes(t, workload.Options{Pace: &pace, Clock: clock})
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
	w := startRemotes(t, workload.Options{Clock: clock})
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

// fewGoroutines is how many a cluster may have that nobody drains: a dozen for each of
// its eight watches, and of what looks after them.
const fewGoroutines = 120

// A manager of a thousand clusters has one that is drained. Nothing is left of a connection that
// has ended.
func TestAConnectionCostsFewGoroutinesAndLeavesNone(t *testing.T) {
	t.Parallel()
	w := startRemotes(t, workload.Options{Pace: &quick})
	c := w.remote(t, "east", w.kubeconfig(t, same))
	label := w.namespace + "-left"
	pprof.Do(t.Context(), pprof.Labels("connection", label), func(context.Context) { w.connect(t, c) })
	patience.Eventually(t, "few goroutines", func(context.Context) (string, bool) {
		count, stacks := goroutines(t, label)
		return strconv.Itoa(count) + " goroutines:\n" + stacks, count > 0 && count <= fewGoroutines
	})

	w.registry.Release(client.ObjectKeyFromObject(c), usingMachine)

	patience.Eventually(t, "the end of all goroutines", func(context.Context) (string, bool) {
		count, stacks := goroutines(t, label)
		return stacks, count == 0
	})
}

// goroutines counts those that come of one with the label.
func goroutines(t *testing.T, label string) (count int, stacks string) {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	_, all, _ := strings.Cut(profile.String(), "\n") // The first line is a headline.
	for block := range strings.SplitSeq(all, "\n\n") {
		if !strings.Contains(block, label) {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(block), " ")
		if n, err := strconv.Atoi(first); err == nil {
			count += n
			stacks += block + "\n"
		}
	}
	return count, stacks
}

// A cluster that cannot stream its lists would answer at once with all that it has.
func TestAListIsReadPageByPage(t *testing.T) {
	t.Parallel()
	w := startRemotes(t, workload.Options{Pace: &quick})
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
