//go:build linux

package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/test/patience"
)

const etcdManifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, namespace: kube-system, labels: {component: etcd, tier: control-plane}}\n" +
	"spec: {containers: [{name: etcd, image: x}]}\n"

func answering(t *testing.T, dir, state string, status *atomic.Int64) *Agent {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Load()))
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, status.Load())
	}))
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range scheme.AllKnownTypes() {
		mapper.Add(gvk, meta.RESTScopeRoot)
	}
	c, err := client.NewWithWatch(&rest.Config{Host: server.URL}, client.Options{Scheme: scheme, Mapper: mapper})
	must(t, err)
	a := lonely(t, dir, state)
	a.Client = c
	return a
}

type running struct {
	*Agent
	t     *testing.T
	clock *atomic.Int64
	stop  func()
}

func runs(t *testing.T, a *Agent, clock *atomic.Int64) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	r := &running{Agent: a, t: t, clock: clock, stop: sync.OnceFunc(func() { cancel(); must(t, <-ended) })}
	a.uptime = func() time.Duration { return time.Duration(clock.Load()) }
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(r.stop)
	return r
}

func (r *running) looks() {
	r.t.Helper()
	before := r.lastPass.Load()
	r.poke()
	patience.Eventually(r.t, "the next pass", func(context.Context) (string, bool) { return "none", r.lastPass.Load() != before })
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return strings.Join(all, ", ")
}

const (
	bothAway = ".etcd.yaml.ebbtide-held, .proxy.yaml.ebbtide-held"
	etcdBack = ".proxy.yaml.ebbtide-held, etcd.yaml"
)

// What is part of the control plane comes back when no API server has answered for long:
// none that is killed, none that cannot reach its etcd. One that refuses is there.
func TestPartsOfTheControlPlaneComeBackUnasked(t *testing.T) {
	for name, test := range map[string]struct {
		status int64
		want   string
	}{
		"nobody listens":     {0, etcdBack},
		"etcd does not":      {http.StatusInternalServerError, etcdBack},
		"a proxy of nobody":  {http.StatusServiceUnavailable, etcdBack},
		"it knows us not":    {http.StatusUnauthorized, bothAway},
		"it refuses":         {http.StatusForbidden, bothAway},
		"it is overburdened": {http.StatusTooManyRequests, bothAway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
			put(t, dir, ".etcd.yaml.ebbtide-held", etcdManifest)
			put(t, dir, ".proxy.yaml.ebbtide-held", manifest)
			a := lonely(t, dir, state)
			if test.status != 0 {
				var status atomic.Int64
				status.Store(test.status)
				a = answering(t, dir, state, &status)
			}
			a.ControlPlane.RestoreAfter = time.Minute
			clock := &atomic.Int64{}
			clock.Store(int64(time.Hour))
			first := runs(t, a, clock)
			first.looks()
			first.stop()
			if after := names(t, dir); after != bothAway {
				t.Errorf("after a moment the folder has %s", after)
			}
			// It is killed, and goes on where it was.
			next := lonely(t, dir, state)
			next.Client, next.ControlPlane.RestoreAfter = a.Client, time.Minute
			again := runs(t, next, clock)
			again.looks()
			clock.Add(int64(40 * time.Second))
			again.ask(t.Context())
			clock.Add(int64(40 * time.Second))
			again.looks()
			again.looks()
			again.stop()
			if after := names(t, dir); after != test.want {
				t.Errorf("the folder has %s, want %s", after, test.want)
			}
			j, err := NewJournal(state).Load()
			must(t, err)
			if len(j.Manifests) != 2 || j.Manifests[0].Unanswered != (test.want == etcdBack) {
				t.Errorf("written down is %+v", j.Manifests)
			}
		})
	}
}

func TestAnswersOfResponders(t *testing.T) {
	resource := schema.GroupResource{Resource: "nodes"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a Node":               {nil, true},
		"no such Node":         {fmt.Errorf("get: %w", apierrors.NewNotFound(resource, "n")), true},
		"a refusal":            {apierrors.NewForbidden(resource, "n", nil), true},
		"a lost etcd":          {apierrors.NewInternalError(context.DeadlineExceeded), false},
		"one that starts":      {apierrors.NewServiceUnavailable("starting"), false},
		"one that is too late": {apierrors.NewTimeoutError("etcdserver: request timed out", 1), false},
		"nobody":               {context.DeadlineExceeded, false},
	} {
		a := lonely(t, t.TempDir(), t.TempDir())
		if a.heard(test.err); (a.signs.answered.Load() > 0) != test.want {
			t.Errorf("%s is an answer: %t", name, !test.want)
		}
	}
}

// Silence counts from when an answer matters, whenever the last one was.
func TestSilenceCountsFromWhenItMatters(t *testing.T) {
	dir := t.TempDir()
	a := lonely(t, dir, t.TempDir())
	a.ControlPlane.RestoreAfter = time.Hour
	a.signs.began.Store(1)
	a.signs.answered.Store(1)
	put(t, dir, ".etcd.yaml.ebbtide-held", etcdManifest)
	s := core.Snapshot{Folder: a.Manifests.List()}
	a.observeControlPlane(&s)
	if silence := s.ControlPlane.Signs.Uptime - s.ControlPlane.Signs.Began; silence > time.Minute || !a.signs.asks.Load() {
		t.Errorf("it counts for %s, asks: %t", silence, a.signs.asks.Load())
	}
	began := s.ControlPlane.Signs.Began
	a.uptime = func() time.Duration { return kernelUptime() + time.Minute }
	if a.observeControlPlane(&s); s.ControlPlane.Signs.Began != began {
		t.Error("it counts from the beginning in each pass")
	}
}
