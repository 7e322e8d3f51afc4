package preflight_test

import (
	"fmt"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/test/goal"
)

// BenchmarkOf asks to drain a half of 1,000 nodes with 20,000 pods under 2,000 budgets, a
// tenth of which allow nothing.
func BenchmarkOf(b *testing.B) {
	w := fleet(1000, 20)
	b.ReportAllocs()
	goal.Time(b, 1500*time.Millisecond)
	for b.Loop() {
		if f := w.forecast(); len(f.Nodes) != 500 || f.Total.Pods != 10000 || f.Total.Blocked != 1000 {
			b.Fatalf("%d nodes, %+v", len(f.Nodes), f.Total)
		}
	}
}

// BenchmarkOfAll asks to drain all of them, so that no replacement fits anywhere.
func BenchmarkOfAll(b *testing.B) {
	w := fleet(1000, 20)
	w.drain.Spec.NodeSelector = named(names(1000)...)
	b.ReportAllocs()
	goal.Time(b, 1500*time.Millisecond)
	for b.Loop() {
		if f := w.forecast(); len(f.Nodes) != 1000 || f.Total.Pods != 20000 || f.Total.Unplaceable == 0 {
			b.Fatalf("%d nodes, %+v", len(f.Nodes), f.Total)
		}
	}
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("node-%04d", i)
	}
	return all
}

// fleet runs ten pods of each of many applications, each under a budget of its own.
func fleet(nodes, podsEach int) *world {
	all := names(nodes)
	w := newWorld(all...)
	w.drain.Spec.NodeSelector = named(all[:nodes/2]...)
	w.free = map[string]int{}
	for _, name := range all {
		w.free[name] = podsEach
	}
	const together = 10
	for app := range nodes * podsEach / together {
		name := fmt.Sprintf("app%dx", app)
		for i := range together {
			w.pod(all[(app*together+i)*nodes/(nodes*podsEach)], fmt.Sprintf("%s-%d", name, i), of("ReplicaSet", name))
		}
		spec := atMost(1)
		if app%10 == 0 {
			spec = atMost(0)
		}
		w.budget(name, name, spec, together, together-spec.MaxUnavailable.IntVal)
	}
	return w
}

// BenchmarkPlan is the preview of a maintenance in Idle of 5,000 nodes with 30 pods each.
func BenchmarkPlan(b *testing.B) {
	w := fleet(5000, 30)
	w.drain.Name, w.drain.Spec.NodeSelector = "fleet", named(names(5000)...)
	w.Maintenance = w.drain
	b.ReportAllocs()
	goal.Time(b, 5*time.Second)
	for b.Loop() {
		if planned := preflight.Plan(w.Snapshot); len(planned) != 5000 {
			b.Fatalf("%d nodes are planned", len(planned))
		}
	}
}
