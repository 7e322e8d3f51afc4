package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

func shownForecast(t *testing.T, f *preflight.Forecast, wide bool) string {
	t.Helper()
	var out bytes.Buffer
	if err := printForecast(&out, f, textStyle{wide: wide}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func foreseenPod(name string, change func(*preflight.PodForecast)) preflight.PodForecast {
	pod := preflight.PodForecast{
		Namespace: "shop", Name: name, Owner: &preflight.Owner{Kind: "Deployment", Name: "web"}, Type: v1alpha1.PodTypeDefault,
		Wave: 1, Action: preflight.ActionEvict, Outcome: preflight.OutcomeLeaves, Replacement: &preflight.Replacement{Node: "node-9"},
	}
	if change != nil {
		change(&pod)
	}
	return pod
}

func TestAForecastOfANodeFitsAScreen(t *testing.T) {
	t.Parallel()
	f := &preflight.Forecast{Verdict: "node-1 may not be drained.", Outcome: preflight.OutcomeMayBeBlocked, Ignores: []string{"preemption"}}
	node := preflight.NodeForecast{Name: "node-1"}
	for i := range 300 {
		node.Pods = append(node.Pods, foreseenPod(fmt.Sprintf("web-%d", i), func(p *preflight.PodForecast) {
			p.Outcome, p.Blocker = preflight.OutcomeMayBeBlocked, &v1alpha1.Blocker{Message: fmt.Sprintf("The budget web-%d is exhausted.", i/20)}
		}))
	}
	node.Count = preflight.Count{Pods: 300, MayBeBlocked: 300}
	f.Nodes, f.Total = []preflight.NodeForecast{node}, node.Count
	short := shownForecast(t, f, false)
	if lines := strings.Count(short, "\n"); lines > 50 {
		t.Errorf("%d lines", lines)
	}
	for _, want := range []string{"and 270 more; use -o wide to list them", "  shop/web-0, shop/web-1 and 18 more: The budget web-0 is exhausted.", "  and 7 more; use -o wide to list them"} {
		if !strings.Contains(short, want) {
			t.Errorf("want %q in\n%s", want, short)
		}
	}
	wide := shownForecast(t, f, true)
	if !strings.Contains(wide, "shop/web-299") || !strings.Contains(wide, "It ignores:\n  preemption") || strings.Contains(wide, "-o wide") {
		t.Errorf("not all of it is told:\n%s", wide)
	}
}

func TestForecastOfManyNodesListsThoseWithTrouble(t *testing.T) {
	t.Parallel()
	f := &preflight.Forecast{Verdict: "1000 nodes would not be drained.", Outcome: preflight.OutcomeBlocked}
	for i := range 1000 {
		node := preflight.NodeForecast{Name: fmt.Sprintf("node-%d", i), Outcome: preflight.OutcomeLeaves, Count: preflight.Count{Pods: 1, Leave: 1}}
		node.Pods = []preflight.PodForecast{foreseenPod(fmt.Sprintf("web-%d", i), nil)}
		if i == 7 {
			node.Outcome, node.Count = preflight.OutcomeBlocked, preflight.Count{Pods: 1, Blocked: 1}
			node.Pods[0].Outcome, node.Pods[0].Blocker = preflight.OutcomeBlocked, &v1alpha1.Blocker{Message: "The budget web is exhausted.", Suggestion: "Wait."}
		}
		f.Nodes = append(f.Nodes, node)
	}
	f.Total = preflight.Count{Pods: 1000, Leave: 999, Blocked: 1}
	f.Budgets = []preflight.BudgetForecast{
		{Namespace: "shop", Name: "web", Effect: preflight.BudgetHolds, PodCount: 1, Why: "The budget web is exhausted."},
		{Namespace: "shop", Name: "db", Effect: preflight.BudgetSlows, PodCount: 2, Why: "1 of 2 at a time."},
	}
	f.Unread = []preflight.Unread{{Kind: "Job", Why: "for\x1b[31mbidden", Consequence: "whether Jobs make other pods: they are thought to"}}
	f.Meetings = []preflight.Meeting{{Maintenance: "kernel", Message: "NodeMaintenance kernel has 3 of the nodes, too."}}
	want := `1000 nodes would not be drained.

NODE     PODS   LEAVE   BLOCKED   MAYBE   WAIT   UNKNOWN   STAY   NOWHERE   DATA LOST
node-7   1      0       1         0       0      0         0      0         0
999 other nodes without problems

Would not leave:
  shop/web-7: The budget web is exhausted. Wait.

PodDisruptionBudgets:
  pdb/web -n shop blocks 1 pod
  pdb/db -n shop slows 2 pods: 1 of 2 at a time.

Other maintenances:
  NodeMaintenance kernel has 3 of the nodes, too.

Unknown:
  whether Jobs make other pods: they are thought to: Job could not be read: for [31mbidden
`
	if diff := cmp.Diff(want, shownForecast(t, f, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextOfOthersHasNoTerminalCommands(t *testing.T) {
	t.Parallel()
	evil := "web\x1b[2J\n" + strings.Repeat("w", 5000)
	f := &preflight.Forecast{Verdict: "node-1 would be drained.", Outcome: preflight.OutcomeLeaves, Nodes: []preflight.NodeForecast{{
		Name: "node-1", Count: preflight.Count{Pods: 1}, Pods: []preflight.PodForecast{foreseenPod("web-1", func(p *preflight.PodForecast) {
			p.Owner = &preflight.Owner{Kind: evil, Name: evil}
			p.DataLost, p.Why = []string{evil}, evil
			p.Replacement = &preflight.Replacement{Unplaceable: true, Why: evil}
		})},
	}}}
	for range 5000 {
		f.Meetings = append(f.Meetings, preflight.Meeting{Message: evil})
	}
	for wide, most := range map[bool]int{false: 12000, true: 5_000_000} {
		out := shownForecast(t, f, wide)
		if strings.Contains(out, "\x1b") || len(out) > most {
			t.Errorf("%d bytes, want at most %d and no escapes:\n%.2000q", len(out), most, out)
		}
	}
}
