package surge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// ends returns how surges ended, by result.
func ends(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			counts[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
		}
	}
	return counts
}

func TestEverySurgeIsCountedOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		play func(*world)
		want string
	}{
		"replaced":  {func(w *world) { w.settle(true) }, "completed"},
		"given up":  {func(w *world) { w.settle(false); w.clock.Step(11 * time.Minute); w.settle(false) }, "gaveup"},
		"cancelled": {func(w *world) { w.settle(false); w.withdraw(); w.settle(true) }, "cancelled"},
		"refused": {func(w *world) {
			d := aDeployment()
			w.must(w.api.Get(w.t.Context(), web.NamespacedName, d))
			d.Spec.Paused = true
			w.must(w.api.Update(w.t.Context(), d))
			w.settle(false)
		}, "ineligible"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			registry := prometheus.NewRegistry()
			w.reconciler.metrics = newMetrics(registry)
			w.ask(w.pod("web-0"))
			test.play(w)
			want := map[string]float64{"completed": 0, "gaveup": 0, "cancelled": 0, "ineligible": 0}
			want[test.want]++
			if diff := cmp.Diff(want, ends(t, registry)); diff != "" {
				t.Errorf("surges (-want +got):\n%s", diff)
			}
		})
	}
}
