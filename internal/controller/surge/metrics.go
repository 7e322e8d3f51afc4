package surge

import (
	"github.com/prometheus/client_golang/prometheus"

	core "ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

type metrics struct {
	surges *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{surges: kube.Register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ebbtide_surges_total",
		Help: "Pods of Deployments that were to be replaced before their eviction, by how that ended.",
	}, []string{"result"}))}
	for _, result := range []core.Result{core.Completed, core.GaveUp, core.Cancelled, core.Refused} {
		m.surges.WithLabelValues(string(result))
	}
	return m
}
