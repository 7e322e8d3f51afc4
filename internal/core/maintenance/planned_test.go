package maintenance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// What a maintenance in Idle would do is said of its nodes, and nothing is done or blocked.
func TestPlannedMaintenanceShowsItsEffects(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("kernel", idle, nil, "one", "two")
	would := v1alpha1.NodeMaintenanceNodeStatus{
		NodeRef: v1alpha1.NodeReference{Name: "one"}, State: v1alpha1.NodeStatePlanned, DrainMessage: "3 pods would leave, 1 pod would not leave.",
		DrainTargets:          []v1alpha1.DrainPlanEntry{entry(v1alpha1.PodTypeDefault, 1000000000), entry(v1alpha1.PodTypeDaemonSet, 2000000000)},
		PodsPendingEvacuation: 4, PodsRetained: 2, Blockers: []v1alpha1.Blocker{{Type: v1alpha1.BlockerPDBUnsatisfiable, PodCount: 1, Message: "never"}},
	}
	s := w.snapshot()
	s.Planned = map[string]map[string]v1alpha1.NodeMaintenanceNodeStatus{"kernel": {"one": would}}
	d := maintenance.Decide(s)
	w.record(&d.Maintenances[0])

	want := []v1alpha1.NodeMaintenanceNodeStatus{would, {NodeRef: v1alpha1.NodeReference{Name: "two"}}}
	if diff := cmp.Diff(want, m.Status.NodeStatuses); diff != "" {
		t.Errorf("what is planned (-want +got):\n%s", diff)
	}
	if want := "2 nodes planned, 4 pods to leave, 1 would be blocked"; m.Status.Summary != want {
		t.Errorf("summary is %q, want %q", m.Status.Summary, want)
	}
	if len(m.Status.Conditions) > 0 {
		t.Errorf("conditions are %v, but nothing has begun", m.Status.Conditions)
	}
	for _, node := range d.Nodes {
		if node.Cordon != nil || len(node.Evacuate) > 0 {
			t.Errorf("something is done to node %s: %+v", node.Node.Name, node)
		}
	}

	// What was planned is no history: the drain begins where its plan begins.
	m.Spec.Stage = drain
	w.run("one", 1, 1000)
	w.pass()
	first := []v1alpha1.DrainPlanEntry{entry(v1alpha1.PodTypeDefault, 1000000000)}
	if diff := cmp.Diff(first, m.Status.NodeStatuses[0].DrainTargets); diff != "" {
		t.Errorf("the first targets of the drain (-want +got):\n%s", diff)
	}
}
