package maintenance_test

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
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
