package maintenance_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Two plans order two labels the other way round. An intersection of the plans
// would never evacuate anything on the node that both share.
func TestPlansThatContradictEachOtherDoNotDeadlock(t *testing.T) {
	w := newWorld(t, "shared", "left", "right")
	a := w.maintenance("a", drain, []v1alpha1.DrainPlanEntry{entryFor("x", "Default", 100), entryFor("y", "Default", 100)}, "shared", "left")
	b := w.maintenance("b", drain, []v1alpha1.DrainPlanEntry{entryFor("y", "Default", 100), entryFor("x", "Default", 100)}, "shared", "right")
	for _, node := range []string{"shared", "left", "right"} {
		w.run(node, 1, 50, labelled("app", "x"))
		w.run(node, 1, 50, labelled("app", "y"))
	}
	expect := func(what string, wantA, wantB []string) {
		t.Helper()
		w.pass()
		w.pass()
		if diff := cmp.Diff([][]string{wantA, wantB}, [][]string{lines(a), lines(b)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		for pod := range w.evacuations {
			w.remove(pod)
		}
	}
	expect("the older one rules the shared node", []string{
		"left 1+1 Evacuating [Default 100 app=x]",
		"shared 1+1 Evacuating [Default 100 app=x]",
	}, []string{
		"right 1+1 Evacuating [Default 100 app=y]",
		"shared 1+1 Evacuating (limited by a) [Default 100 app=x]",
	})
	expect("then both labels leave it", []string{
		"left 0+1 Evacuating [Default 100 app=x, Default 100 app=y]",
		"shared 0+1 Evacuating [Default 100 app=x, Default 100 app=y]",
	}, []string{
		"right 1+0 Waiting for node shared. [Default 100 app=y]",
		"shared 0+1 Evacuating (fast-forwarded by older a) [Default 100 app=x, Default 100 app=y]",
	})
	expect("and the younger one moves on", []string{
		"left 0+0 Drained. [" + everything("x", "y") + "]",
		"shared 0+0 Drained. [" + both + "]",
	}, []string{
		"right 0+1 Evacuating [Default 100 app=y, Default 100 app=x]",
		"shared 0+0 Drained. [" + both + "]",
	})
}

const both = "Default 100 app=y, Default 100 app=x"

// everything are the targets of a node whose maintenance has nothing left.
func everything(apps ...string) string {
	all := "Default 2147483647"
	for _, app := range apps {
		all += ", Default 2147483647 app=" + app
	}
	return all + ", DaemonSet 2147483647, Static 2147483647"
}

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

func TestWaitingForSeveralMaintenances(t *testing.T) {
	w := newWorld(t, "one", "two", "far-a", "far-b", "mine")
	low, high := entry("Default", 1000), entry("Default", 5000)
	w.maintenance("a", drain, []v1alpha1.DrainPlanEntry{low}, "one", "far-a")
	w.maintenance("b", drain, []v1alpha1.DrainPlanEntry{low}, "two", "far-b")
	m := w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{high}, "one", "two", "mine")
	w.run("far-a", 1, 0)
	w.run("far-b", 1, 0)
	w.run("one", 1, 5000)
	w.run("two", 1, 5000)
	w.run("mine", 1, 9000)
	w.pass()
	if diff := cmp.Diff([]string{
		"mine 1+0 Waiting for nodes far-a (a), far-b (b). [Default 5000]",
		"one 1+0 Waiting for node far-a (a). [Default 1000]",
		"two 1+0 Waiting for node far-b (b). [Default 1000]",
	}, lines(m)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// The pre-condition of a younger plan is broken as soon as it joins, whether or
// not there are pods left that show it.
func TestFastForwardIsToldToAMaintenanceThatJoins(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.maintenance("older", drain, []v1alpha1.DrainPlanEntry{entry("Default", 5000)}, "one")
	w.run("one", 1, 9000, labelled(v1alpha1.DrainLabel, "wait-completed"))
	w.pass()
	m := w.maintenance("younger", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "one", "two")
	w.run("two", 1, 0)
	w.run("one", 1, 2000000000)
	first := w.pass().Maintenances[1].Events
	if diff := cmp.Diff([]string{
		"NodeMaintenance/younger StageStarted", "NodeMaintenance/younger FastForwarded",
		"NodeMaintenance/younger Blocked", "Node/one Blocked", "Pod/pod-0001 Blocked",
	}, reasons(first)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"one 2+0 Waiting for pods to complete (fast-forwarded by older older) [Default 1000000000]",
		"two 1+0 Evacuating [Default 1000]",
	}, lines(m)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	w.pods["one"] = w.pods["one"][1:]
	for range 2 {
		if again := w.pass().Maintenances[1].Events; len(again) > 0 {
			t.Errorf("it is told again: %v", reasons(again))
		}
	}
	if diff := cmp.Diff("Waiting for node two.", m.Status.NodeStatuses[0].DrainMessage); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

// New pods take a maintenance back in its plan, but no node in its targets.
func TestTheEndOfADrainIsToldAlthoughTheCordonIsFought(t *testing.T) {
	w := newWorld(t, "one")
	w.maintenance("m", drain, nil, "one")
	w.run("one", 1, 0)
	w.pass()
	w.leave("one", 0)
	w.find("one").Spec.Unschedulable = false
	var told []string
	for range 3 {
		told = append(told, reasons(w.pass().Maintenances[0].Events)...)
	}
	if diff := cmp.Diff([]string{"Node/one NodeDrained", "NodeMaintenance/m Drained"}, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestHistoryIsNotFastForwarding(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "one")
	w.run("one", 1, 5000)
	w.pass()
	w.run("one", 1, 0)
	decision := w.pass()
	if diff := cmp.Diff([]string{"one 1+1 Evacuating [Default 1000000000]"}, lines(m)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if d := decision.Maintenances[0]; d.Record || len(d.Events) > 0 {
		t.Errorf("record is %v and events are %v, want neither", d.Record, reasons(d.Events))
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
