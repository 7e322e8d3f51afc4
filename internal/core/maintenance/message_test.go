package maintenance_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func TestWaitingForManyNodes(t *testing.T) {
	for name, test := range map[string]struct {
		busy int
		want string
	}{
		"one":   {1, "Waiting for node busy-0."},
		"two":   {2, "Waiting for nodes busy-0, busy-1."},
		"three": {3, "Waiting for nodes busy-0, busy-1, busy-2."},
		"four":  {4, "Waiting for nodes busy-0, busy-1, busy-2 and 1 more."},
		"many":  {9, "Waiting for nodes busy-0, busy-1, busy-2 and 6 more."},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "waits")
			nodes := []string{"waits"}
			for n := range test.busy {
				nodes = append(nodes, fmt.Sprintf("busy-%d", n))
				w.node(nodes[n+1])
				w.run(nodes[n+1], 1, 1000)
			}
			w.run("waits", 1, 9000)
			m := w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, nodes...)
			w.pass()
			got := m.Status.NodeStatuses[test.busy]
			if got.State != v1alpha1.NodeStateWaitingForNodes || got.DrainMessage != test.want {
				t.Errorf("it is %s, and its message %q, want %q", got.State, got.DrainMessage, test.want)
			}
			want := []v1alpha1.NodeReference{{Name: "busy-0"}, {Name: "busy-1"}, {Name: "busy-2"}}[:min(test.busy, 3)]
			if diff := cmp.Diff(want, got.AwaitedNodes); diff != "" {
				t.Errorf("it awaits (-want +got):\n%s", diff)
			}
		})
	}
}

// A manager before the field state wrote none, and has told what it saw.
func TestAStatusWithoutStatesGetsThemAndNoSecondEvent(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", drain, nil, "one", "two")
	w.run("two", 1, 0)
	w.pass()
	w.pass()
	for i := range m.Status.NodeStatuses {
		m.Status.NodeStatuses[i].State = ""
	}
	if events := w.pass().Maintenances[0].Events; len(events) > 0 {
		t.Errorf("it is told again: %v", reasons(events))
	}
	states := []v1alpha1.NodeState{m.Status.NodeStatuses[0].State, m.Status.NodeStatuses[1].State}
	if diff := cmp.Diff([]v1alpha1.NodeState{v1alpha1.NodeStateDrained, v1alpha1.NodeStateDraining}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	w.leave("two", 0)
	if diff := cmp.Diff([]string{"Node/two NodeDrained", "NodeMaintenance/m Drained"}, reasons(w.pass().Maintenances[0].Events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestUnknownPodsStopTheirMaintenanceOnly(t *testing.T) {
	w := newWorld(t, "known", "unknown", "other")
	m := w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "known", "unknown")
	other := w.maintenance("other", drain, nil, "other")
	w.run("known", 1, 5000)
	delete(w.pods, "unknown")
	w.pass()
	w.pass()
	if diff := cmp.Diff([]string{
		"known 1+0 Waiting for node unknown. [Default 1000]",
		"unknown 0+0 Waiting for the pods of the node to be read. [Default 1000]",
	}, lines(m)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) || !isTrue(other.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Error("want the maintenance of the unknown node not Drained, the other one Drained")
	}
	if got, want := m.Status.Summary, "0/2 nodes drained, 1 pod left, 1 node not read"; got != want {
		t.Errorf("summary is %q, want %q", got, want)
	}
	if nodeCondition(w.find("unknown"), v1alpha1.NodeDrained).Status != "False" {
		t.Errorf("an unknown node announces %+v", w.find("unknown").Status.Conditions)
	}
}
