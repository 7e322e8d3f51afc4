package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// The plan of the maintenance is what the administrator wrote: ordinary pods
// first, then the database, then what everything else depends on. A pod of a
// later entry must not even begin to leave while one of an earlier entry is
// still there.
func TestPodsLeaveInTheOrderOfThePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	first := w.pods(node, pod{name: "web-1", priority: 500}, pod{name: "web-2", priority: 1000})
	second := w.pods(node, pod{name: "postgres", priority: 2000, labels: map[string]string{"app": "postgres"}})
	third := w.pods(node, pod{name: "queue", priority: 2000}, pod{name: "proxy", priority: 1500})
	fourth := w.pods(node, pod{name: "gateway", priority: 5000})
	departures := w.watchDepartures(first, second, third, fourth)

	w.maintain("upgrade", v1alpha1.StageDrain, []string{node},
		entry(1000), selecting(entry(2000), "app", "postgres"), entry(2000), entry(5000))

	w.awaitDrained("upgrade")
	departures.assertInOrder()
	w.assertNodeStatus("upgrade", node, func(s v1alpha1.NodeMaintenanceNodeStatus) any { return s.State }, v1alpha1.NodeStateDrained)

	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNode(node, "schedulable and without ledger", func(n *corev1.Node) bool {
		return !n.Spec.Unschedulable && n.Annotations[v1alpha1.CordonAnnotation] == ""
	})
	w.awaitNoEvacuations()
}

// A pod that comes to the node while it is being drained is covered by what is
// already targeted and has to leave as well.
func TestNewPodsLeaveToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.pods(node, pod{name: "held", held: true})
	w.maintain("upgrade", v1alpha1.StageDrain, []string{node})
	w.awaitPod("held", "terminating", terminating)

	w.createPod(w.podOn(node, pod{name: "latecomer"}))

	w.awaitGone("latecomer")
	w.assertNotDrained("upgrade")
	w.release("held")
	w.awaitDrained("upgrade")
}
