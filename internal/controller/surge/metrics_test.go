package surge

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"ebbtide.dev/ebbtide/test/difference"
)

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
			surges := w.reconciler.metrics.surges
			if shown := testutil.CollectAndCount(surges); shown != 4 {
				t.Errorf("%d results are shown before the first surge, want all 4", shown)
			}
			w.ask(w.pod("web-0"))
			test.play(w)
			want := map[string]float64{"completed": 0, "gaveup": 0, "cancelled": 0, "ineligible": 0}
			want[test.want]++
			got := map[string]float64{}
			for result := range want {
				got[result] = testutil.ToFloat64(surges.WithLabelValues(result))
			}
			difference.None(t, "surges", want, got)
		})
	}
}
