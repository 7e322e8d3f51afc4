//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

const readyWithin = 30 * time.Second

type metrics struct {
	registry      *prometheus.Registry
	pods          *prometheus.GaugeVec
	holds         prometheus.Histogram
	journalErrors prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		pods: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ebbtide_agent_static_pods", Help: "Static pods of the node, by how far they have been taken down.",
		}, []string{"state"}),
		journalErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ebbtide_agent_journal_errors_total", Help: "How often the journal could not be read or written.",
		}),
	}
	m.holds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "ebbtide_agent_hold_seconds", Help: "How long static pods took to be gone after their manifests were put aside.",
		Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800},
	})
	m.registry.MustRegister(m.pods, m.holds, m.journalErrors)
	return m
}

func (m *metrics) count(pods []v1alpha1.StaticPod) {
	m.pods.Reset()
	for i := range pods {
		m.pods.WithLabelValues(string(pods[i].State)).Inc()
	}
}

// held counts pods that are gone since the previous journal.
func (m *metrics) held(before, after core.Journal) {
	since := map[string]time.Time{}
	for i := range before.Manifests {
		if e := &before.Manifests[i]; e.State == v1alpha1.StaticPodHolding {
			since[e.File] = e.At
		}
	}
	for i := range after.Manifests {
		e := &after.Manifests[i]
		if at, held := since[e.File]; held && e.State == v1alpha1.StaticPodHeld {
			m.holds.Observe(max(e.At.Sub(at), 0).Seconds())
		}
	}
}

// Serve answers /healthz, /readyz and /metrics until the context ends. It fails if the address is
// invalid or in use.
func (a *Agent) Serve(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serve /healthz, /readyz and /metrics at --health-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.Log.Error(err, "Stopped serving health checks and metrics")
		}
	}()
	return nil
}

func (a *Agent) works() bool {
	last := a.lastPass.Load()
	return last != 0 && time.Since(time.Unix(0, last)) <= readyWithin
}

func (a *Agent) readyz(w http.ResponseWriter, _ *http.Request) {
	if !a.works() {
		http.Error(w, fmt.Sprintf("the last pass was more than %s ago", readyWithin), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
