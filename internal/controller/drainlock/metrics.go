package drainlock

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/kube"
)

type metrics struct {
	wait  prometheus.Histogram
	locks prometheus.Gauge

	mu sync.Mutex
	// counted is the number of locks by node.
	counted map[string]int
}

func newMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{
		wait: kube.Register(registry, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ebbtide_lock_wait_seconds",
			Help:    "Time from when a node first needs locks of disruption budgets until it has all of them.",
			Buckets: prometheus.ExponentialBuckets(1, 3, 9),
		})),
		locks: kube.Register(registry, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ebbtide_budget_locks",
			Help: "Disruption budgets that drains have locked for pods that stay on their nodes.",
		})),
		counted: map[string]int{},
	}
}

func (m *metrics) wrote(before, after *v1alpha1.DrainRecord, now time.Time) {
	m.has(after.Name, len(after.Status.Locks))
	if len(after.Spec.Budgets) == 0 || core.Held(before) || !core.Held(after) {
		return
	}
	since := before.CreationTimestamp.Time
	if waiting := before.Status.WaitStartTime; waiting != nil {
		since = waiting.Time
	}
	m.wait.Observe(max(now.Sub(since), 0).Seconds())
}

func (m *metrics) has(node string, locks int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locks.Add(float64(locks - m.counted[node]))
	m.counted[node] = locks
}

func (m *metrics) gone(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locks.Sub(float64(m.counted[node]))
	delete(m.counted, node)
}
