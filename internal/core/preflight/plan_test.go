package preflight_test

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

// What a maintenance in Idle says of its node.
func TestPlannedMaintenances(t *testing.T) {
	for name, tc := range map[string]struct {
		world             func(*world)
		pending, retained int32
		blockers          []v1alpha1.BlockerType
	}{
		"no pods":     {world: func(*world) {}},
		"a few pods":  {world: func(w *world) { w.replicas("web", "one", "one", "two") }, pending: 2},
		"one of them": {world: func(w *world) { w.replicas("web", "one") }, pending: 1},
		"a NodeBudget holds the node": {
			world: func(w *world) {
				w.replicas("web", "one", "one", "two")
				w.World.NodeBudgets = nodebudget.Unread("no answer")
			}, pending: 2,
		},
		"pods of all sorts": {
			world: func(w *world) {
				w.replicas("web", "one", "one", "two")
				w.pod("one", "tool", labelled(v1alpha1.DrainLabel, "skip"))
				w.pod("one", "batch-1", of("Job", "batch"), labelled(v1alpha1.DrainLabel, "wait-completed"))
				w.replicas("db", "one")
				w.budget("db", "db", atMost(0), 1, 1)
			}, pending: 4, retained: 1,
			blockers: []v1alpha1.BlockerType{v1alpha1.BlockerPDBUnsatisfiable, v1alpha1.BlockerWaitingForCompletion},
		},
		"pods whose turn would not come": {
			world: func(w *world) {
				w.replicas("db", "one")
				w.budget("db", "db", atMost(0), 1, 1)
				w.pod("one", "log", priority(2000000000))
			}, pending: 2,
			blockers: []v1alpha1.BlockerType{v1alpha1.BlockerPDBUnsatisfiable},
		},
		"nobody has read the pods": {
			world: func(w *world) { delete(w.World.Pods, "one") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("one", "two")
			tc.world(w)
			w.drain.Name, w.drain.Spec.Stage = "kernel", v1alpha1.StageIdle
			w.World.Maintenances = []*v1alpha1.NodeMaintenance{w.drain}
			w.Maintenance = w.drain
			got := preflight.Plan(w.Snapshot)["one"]
			var blockers []v1alpha1.BlockerType
			for _, b := range got.Blockers {
				blockers = append(blockers, b.Type)
				if b.SinceTime != nil {
					t.Errorf("%s blocks since %s, although nothing has begun", b.Type, b.SinceTime)
				}
			}
			want := []any{tc.pending, tc.retained, tc.blockers}
			difference.None(t, "what is planned", want, []any{got.PodsPendingEvacuation, got.PodsRetained, blockers})
			golden.Message(t, got.DrainMessage)
			if tc.pending > 0 && len(got.DrainTargets) == 0 {
				t.Error("nothing says which pods would go first")
			}
		})
	}
}
