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
