package cli

import (
	"fmt"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/core/preflight"
)

func TestForecastListsOtherMaintenancesOfTheNodes(t *testing.T) {
	t.Parallel()
	f := &preflight.Forecast{Verdict: "20 nodes would be drained.", Outcome: preflight.OutcomeLeaves}
	for i := range 20 {
		f.Nodes = append(f.Nodes, preflight.NodeForecast{
			Name: fmt.Sprintf("node-%d", i), Notes: []string{fmt.Sprintf("Karpenter drains node node-%d.\x1b[2J", i)},
			Pods: []preflight.PodForecast{foreseenPod("web", func(p *preflight.PodForecast) { p.Objection = "it asks Karpenter" })},
		})
	}
	short := shownForecast(t, f, false)
	for _, want := range []string{
		"\nOther drains of these nodes:\n  Karpenter drains node node-0. [2J\n", "node-7. [2J\n  and 12 more; use -o wide to list them\n",
		"\nAnnotated not to be disrupted:\n  shop/web", ": it asks Karpenter\n",
	} {
		if !strings.Contains(short, want) {
			t.Errorf("want %q in\n%s", want, short)
		}
	}
	if wide := shownForecast(t, f, true); !strings.Contains(wide, "node node-19.") || strings.Contains(wide, "use -o wide") {
		t.Errorf("not all of it is told:\n%s", wide)
	}
}
