package evacuation

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/difference"
)

// gauges returns the evacuations that are counted, by evacuator and state.
func gauges(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if value := metric.GetGauge().GetValue(); value != 0 {
				labels := metric.GetLabel()
				counts[labels[0].GetValue()+"/"+labels[1].GetValue()] = value
			}
		}
	}
	return counts
}

func TestEveryEvacuationIsCountedOnce(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	m.counts(key("a"), "", core.StateEvicting)
	m.counts(key("a"), "", core.StateEvicting)
	m.counts(key("b"), "deployment.apps.k8s.io", core.StateEvacuating)
	m.counts(key("c"), "mover.example.com", core.StateEvacuating)
	m.counts(key("d"), "another.example.com", core.StateEvacuating)
	want := map[string]float64{"none/evicting": 1, "deployment.apps.k8s.io/evacuating": 1, "other/evacuating": 2}
	difference.None(t, "counts", want, gauges(t, registry))
	m.counts(key("a"), "", core.StateTerminating)
	m.gone(key("b"))
	m.gone(key("b"))
	m.gone(key("c"))
	want = map[string]float64{"none/terminating": 1, "other/evacuating": 1}
	difference.None(t, "counts afterwards", want, gauges(t, registry))
	if newMetrics(registry).evacuations != m.evacuations {
		t.Error("a second manager of the process should count in the same place")
	}
}
