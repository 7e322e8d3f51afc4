package scenario

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// The example of KEP-4212, section "Pod Selection and DrainTargets Example":
// maintenance-a has the nodes one and two, maintenance-b one and three. Pods are
// held, so that every step lasts until the test goes on.
func TestTwoIntersectingMaintenances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.intersect()
	one, two, three := nodes[0], nodes[1], nodes[2]

	w.awaitMessages(map[string]map[string]string{
		"maintenance-a": {one: "Evacuating", two: "Evacuating"},
		"maintenance-b": {one: w.says("Evacuating (limited by maintenance-a)"), three: "Evacuating"},
	})

	w.release("three-10000")
	w.awaitMessages(map[string]map[string]string{
		"maintenance-b": {one: w.says("Evacuating (limited by maintenance-a)"), three: w.says("Waiting for node one.")},
	})

	w.release("one-5000")
	w.awaitMessages(map[string]map[string]string{
		"maintenance-a": {one: w.says("Waiting for node two."), two: "Evacuating"},
		"maintenance-b": {one: w.says("Waiting for node two (maintenance-a)."), three: w.says("Waiting for node two (maintenance-a).")},
	})

	w.release("two-5000")
	w.awaitMessages(map[string]map[string]string{
		"maintenance-a": {one: w.says("Evacuating (limited by maintenance-b)"), two: "Evacuating"},
		"maintenance-b": {one: "Evacuating", three: w.says("Waiting for node one.")},
	})
	w.assertTargets("maintenance-a", one, 10000)
	w.assertTargets("maintenance-a", two, 15000)
	w.assertTargets("maintenance-b", one, 10000)

	w.release("one-10000", "one-15000", "two-15000", "three-15000")
	w.awaitDrained("maintenance-a")
	w.awaitDrained("maintenance-b")
}

// A maintenance that comes late to a node whose pods have begun to leave does
// not turn the drain back; it is carried along and told so.
func TestThirdMaintenanceIsFastForwarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.intersect()
	one := nodes[0]
	four := w.nodes("four")[0]
	w.pods(four, pod{name: "four-2000", priority: 2000, held: true})
	w.release("three-10000", "one-5000", "two-5000")
	w.awaitMessages(map[string]map[string]string{"maintenance-b": {one: "Evacuating"}})

	w.maintain("maintenance-c", v1alpha1.StageDrain, []string{one, four}, entry(2000), entry(15000))

	w.awaitMessages(map[string]map[string]string{
		"maintenance-c": {one: w.says("Evacuating (fast-forwarded by older maintenance-b)"), four: "Evacuating"},
	})
	w.assertTargets("maintenance-c", one, 10000)
	w.assertTargets("maintenance-c", four, 2000)
	w.awaitEvent("maintenance-c", "FastForwarded")

	w.release("one-10000", "one-15000", "two-15000", "three-15000", "four-2000")
	w.awaitDrained("maintenance-c")
}

// When the last of two maintenances leaves a node, and not before, the node is
// given back.
func TestNodeIsGivenBackByTheLastMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.maintain("first", v1alpha1.StageCordon, []string{node})
	w.maintain("second", v1alpha1.StageDrain, []string{node})
	w.awaitDrained("second")
	w.awaitHolders(node, "first", "second")

	w.setStage("second", v1alpha1.StageComplete)
	w.awaitHolders(node, "first")
	w.assertUnschedulable(node, true)

	w.setStage("first", v1alpha1.StageComplete)
	w.awaitHolders(node)
	w.assertUnschedulable(node, false)
}

// intersect builds the world of the KEP's example and starts both maintenances.
func (w *world) intersect() []string {
	w.t.Helper()
	nodes := w.nodes("one", "two", "three")
	one, two, three := nodes[0], nodes[1], nodes[2]
	w.pods(one, pod{name: "one-5000", priority: 5000, held: true}, pod{name: "one-10000", priority: 10000, held: true},
		pod{name: "one-15000", priority: 15000, held: true})
	w.pods(two, pod{name: "two-5000", priority: 5000, held: true}, pod{name: "two-15000", priority: 15000, held: true})
	w.pods(three, pod{name: "three-10000", priority: 10000, held: true}, pod{name: "three-15000", priority: 15000, held: true})
	w.maintain("maintenance-a", v1alpha1.StageDrain, []string{one, two}, entry(5000), entry(15000), daemons(3000))
	w.maintain("maintenance-b", v1alpha1.StageDrain, []string{one, three}, entry(10000), entry(15000), daemons(4000))
	return nodes
}
