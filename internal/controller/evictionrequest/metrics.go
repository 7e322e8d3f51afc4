package evictionrequest

import (
	"github.com/prometheus/client_golang/prometheus"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

type metrics struct{ states *prometheus.GaugeVec }

func newMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{states: kube.Register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ebbtide_eviction_controller",
		Help: "1 for what Ebbtide is to EvictionRequests: off, not-served, active, aside for another controller, or unknown; else 0.",
	}, []string{"state"}))}
}

func (m *metrics) state(now core.State) {
	for _, state := range core.States() {
		value := 0.0
		if state == now {
			value = 1
		}
		m.states.WithLabelValues(string(state)).Set(value)
	}
}
