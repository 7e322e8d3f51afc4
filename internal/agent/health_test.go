//go:build linux

package agent

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

func metricsOf(a *Agent, name string) (lines []string) {
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// A pod that takes seven seconds to end is counted once, when it is gone.
func TestHowLongPodsTakeToEndIsCounted(t *testing.T) {
	a := lonely(t, t.TempDir(), t.TempDir())
	begin := time.Date(2026, time.March, 1, 14, 2, 0, 0, time.UTC)
	entry := func(state v1alpha1.StaticPodState, after time.Duration) core.Decision {
		return core.Decision{Journal: &core.Journal{Manifests: []core.Entry{
			{File: "proxy.yaml", Held: core.HeldName("proxy.yaml"), State: state, At: begin.Add(after)},
		}}}
	}
	for _, step := range []struct {
		decision core.Decision
		count    string
		sum      string
	}{
		{core.Decision{}, "0", "0"},
		{entry(v1alpha1.StaticPodHolding, 0), "0", "0"},
		{entry(v1alpha1.StaticPodHolding, 0), "0", "0"},
		{entry(v1alpha1.StaticPodHeld, 7*time.Second), "1", "7"},
		{entry(v1alpha1.StaticPodHeld, 7*time.Second), "1", "7"},
		{entry(v1alpha1.StaticPodRestoring, time.Hour), "1", "7"},
		{entry(v1alpha1.StaticPodHolding, time.Hour), "1", "7"},
		// The clock of the host was set back meanwhile.
		{entry(v1alpha1.StaticPodHeld, time.Minute), "2", "7"},
	} {
		a.record(step.decision)
		got := strings.Join(append(metricsOf(a, "ebbtide_agent_hold_seconds_sum"), metricsOf(a, "ebbtide_agent_hold_seconds_count")...), ", ")
		if want := "ebbtide_agent_hold_seconds_sum " + step.sum + ", ebbtide_agent_hold_seconds_count " + step.count; got != want {
			t.Errorf("after %+v: %s, want %s", step.decision.Journal, got, want)
		}
	}
	if buckets := metricsOf(a, `ebbtide_agent_hold_seconds_bucket{le="10"}`); strings.Join(buckets, "") != `ebbtide_agent_hold_seconds_bucket{le="10"} 2` {
		t.Errorf("the bucket of 10 s: %v", buckets)
	}
}
