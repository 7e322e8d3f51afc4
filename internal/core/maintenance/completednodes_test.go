package maintenance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// giveBack gives nodes of a maintenance back before the others.
func giveBack(m *v1alpha1.NodeMaintenance, nodes ...string) {
	for _, node := range nodes {
		m.Spec.CompletedNodes = append(m.Spec.CompletedNodes, v1alpha1.NodeReference{Name: node})
	}
	m.Generation++
}

// asked is how many pods of a node are asked to leave.
func (w *world) asked(node string) int {
	count := 0
	for _, pod := range w.pods[node] {
		if w.evacuations[pod.UID] != nil {
			count++
		}
	}
	return count
}

func TestANodeIsGivenBackWhileTheOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one", "two", "three")
	m := w.maintenance("m", drain, nil, "one", "two", "three")
	w.run("one", 1, 0)
	w.run("three", 2, 0)
	w.pass()
	w.pass()
	if w.asked("one") != 1 || w.asked("three") != 2 {
		t.Fatalf("%d and %d pods are asked to leave", w.asked("one"), w.asked("three"))
	}

	giveBack(m, "three")
	for range 3 {
		w.pass()
	}
	if node := w.find("three"); node.Spec.Unschedulable || maintenance.Marked(node) || w.asked("three") != 0 || w.announces("three") != "" {
		t.Errorf("node three is not given back: %d pods are asked to leave, it announces %q, and is %+v", w.asked("three"), w.announces("three"), node)
	}
	for name, pods := range map[string]int{"one": 1, "two": 0} {
		if node := w.find(name); !node.Spec.Unschedulable || len(cordon.Holders(node)) != 1 || w.asked(name) != pods {
			t.Errorf("node %s does not go on: %d pods are asked to leave, and it is %+v", name, w.asked(name), node)
		}
	}
	want := []string{"False", "1/2 nodes drained, 1 pod left, 1 given back", "one: Evacuating", "two: Drained."}
	if diff := cmp.Diff(want, says(m)); diff != "" || m.Status.NodeCount != 2 {
		t.Errorf("it has %d nodes and says (-want +got):\n%s", m.Status.NodeCount, diff)
	}

	w.leave("one", 0)
	w.pass()
	if want := []string{"True", "2/2 nodes drained, 1 given back", "one: Drained.", "two: Drained."}; !cmp.Equal(want, says(m)) {
		t.Errorf("it says %q", says(m))
	}
	m.Spec.Stage = complete
	for range 3 {
		w.pass()
	}
	if !maintenance.Finished(m) || w.find("one").Spec.Unschedulable || w.find("two").Spec.Unschedulable {
		t.Errorf("it does not end: %+v", m.Status)
	}
}

// What is recorded under the name of a node is for any node of that name.
func TestANodeOfAGivenBackNameIsNotTakenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", drain, nil, "one", "two")
	giveBack(m, "one")
	w.nodes = w.nodes[1:]
	w.pass()
	w.node("one").UID = "another"
	w.run("one", 1, 0)
	w.pass()
	w.pass()
	if node := w.find("one"); node.Spec.Unschedulable || w.asked("one") != 0 {
		t.Errorf("it is taken: %d pods are asked to leave, and it is %+v", w.asked("one"), node)
	}
}

func TestANodeThatAnotherMaintenanceHoldsStaysCordoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one", "two")
	first, second := w.maintenance("first", drain, nil, "one", "two"), w.maintenance("second", v1alpha1.StageCordon, nil, "one")
	w.run("one", 1, 0)
	w.pass()
	w.pass()
	giveBack(first, "one")
	for range 3 {
		w.pass()
	}
	node := w.find("one")
	if diff := cmp.Diff([]string{"second"}, cordon.Holders(node)); diff != "" || !node.Spec.Unschedulable || w.asked("one") != 0 {
		t.Errorf("%d pods are asked to leave, and its holders are (-want +got):\n%s", w.asked("one"), diff)
	}
	second.Spec.Stage = complete
	for range 3 {
		w.pass()
	}
	if node := w.find("one"); node.Spec.Unschedulable || maintenance.Marked(node) {
		t.Errorf("it is not given back: %+v", node)
	}
}

func TestANodeThatIsGivenBackGivesItsLocksBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one", "two")
	m := inPlace(w.maintenance("m", drain, nil, "one", "two"), 300)
	w.budget("db")
	w.run("one", 1, 0, stays, label("app", "db"))
	for range 3 {
		w.pass()
	}
	w.take("one", "db")
	w.pass()
	if got := w.announces("one"); got != "Drained MaintenanceInProgress" {
		t.Fatalf("it announces %q", got)
	}
	giveBack(m, "one")
	w.pass()
	w.pass()
	if record := w.records["one"]; !record.Spec.Complete || w.find("one").Spec.Unschedulable {
		t.Errorf("the locks are not given back: %+v", record.Spec)
	}
}
