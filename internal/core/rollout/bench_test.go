package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/goal"
)

// middle is the middle of four rollouts that share the nodes: a third is done, some drain.
func middle(t testing.TB, nodes int) *world {
	w := newWorld(t)
	for n := range nodes {
		w.join(fmt.Sprintf("node-%05d", n), labelled(poolLabel, []string{"a", "b"}[n%2]), labelled(zoneLabel, fmt.Sprint(n%3)))
	}
	for i := range 4 {
		w.start(fmt.Sprintf("rollout-%d", i), func(s *v1alpha1.NodeRolloutSpec) {
			s.NodeSelector = pool([][]string{{"a"}, {"b"}, {"a", "b"}, {"a", "b"}}[i]...)
			s.MaxUnavailable = new(intstr.FromString("5%"))
			window("11:00", "10:00")(s)
		})
	}
	for done := 0; done < nodes/3; {
		for _, m := range w.decide().Rollouts[0].Starts {
			w.succeed(nodeOf(m))
			done++
		}
		w.now = w.now.Add(time.Minute)
	}
	w.decide()
	return w
}

// BenchmarkDecide is a decision in the middle of four rollouts over 5,000 nodes.
func BenchmarkDecide(b *testing.B) {
	snapshot := middle(b, 5000).snapshot()
	b.ReportAllocs()
	goal.Time(b, 50*time.Millisecond)
	for b.Loop() {
		rollout.Decide(snapshot)
	}
}

// BenchmarkDecideUnderNodeBudgets is the same decision under four NodeBudgets, each of which is at its
// limit.
func BenchmarkDecideUnderNodeBudgets(b *testing.B) {
	w := middle(b, 5000)
	for i := range 4 {
		w.limitTo(fmt.Sprintf("budget-%d", i), func(s *v1alpha1.NodeBudgetSpec) {
			s.NodeSelector, s.MaxUnavailable = pool([][]string{{"a"}, {"b"}, {"a", "b"}, {"a", "b"}}[i]...), new(intstr.FromString("3%"))
		})
	}
	w.decide()
	snapshot := w.snapshot()
	b.ReportAllocs()
	goal.Time(b, 50*time.Millisecond)
	for b.Loop() {
		rollout.Decide(snapshot)
	}
}

// A decision must not cost each node a look at all others.
func TestDecisionGrowsWithTheNumberOfNodes(t *testing.T) {
	allocations := func(nodes int) float64 {
		snapshot := middle(t, nodes).snapshot()
		return testing.AllocsPerRun(3, func() { rollout.Decide(snapshot) })
	}
	few, many := allocations(200), allocations(800)
	if many > 5*few {
		t.Errorf("%.0f allocations for 800 nodes, %.0f for 200", many, few)
	}
}
