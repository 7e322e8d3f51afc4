package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A Machine is deleted while its node is under maintenance. Both drain it and both
// end. When the maintenance ends first, it gives the node back as it found it, and
// the Machine keeps pods off it nevertheless.
func TestLongAMachineIsDeletedUnderMaintenance(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	node := w.running("m")[0]
	w.pods(node, pod{name: "web"}, pod{name: "held", held: true}, pod{name: "guarded", neverEvicted: true})
	w.maintain("upgrade", v1alpha1.StageDrain, []string{node})
	w.awaitGone("web")
	w.awaitEvacuation("guarded")

	w.deleteMachines(node)
	w.awaitStep(node, v1alpha1.ReasonDrainingNode,
		"Pods with deletionTimestamp that still exist: "+w.ns+"/held", "Pods with eviction failed", w.ns+"/guarded")
	w.awaitHolders(node, "upgrade")
	w.assertUnschedulable(node, true)
	w.setStage("upgrade", v1alpha1.StageComplete)

	w.awaitHolders(node)
	w.awaitNoEvacuations()
	w.awaitNode(node, "cordoned by the Machine", cordoned)
	w.assertStaysCordoned(node)
	w.awaitPod("guarded", "still running", running)
	w.release("held")
	w.openBudget("guarded")
	w.awaitNothingLeft(node)
	w.forget("upgrade")
}

// A node comes under maintenance while its Machine is deleted. The maintenance
// found it cordoned and leaves it so; its own end is that the node is gone.
func TestLongAMaintenanceOfAMachineThatIsDeleted(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	nodes := w.running("m", "n")
	w.pods(nodes[0], pod{name: "held", held: true}, pod{name: "guarded", neverEvicted: true})
	w.deleteMachines(nodes[0])
	w.awaitNode(nodes[0], "cordoned", cordoned)

	for _, maintenance := range []string{"first", "second"} {
		w.maintain(maintenance, v1alpha1.StageDrain, nodes)
		w.awaitHolders(nodes[0], maintenance)
		w.awaitEvacuation("guarded")
		if maintenance == "first" {
			w.setStage(maintenance, v1alpha1.StageComplete)
			w.awaitHolders(nodes[0])
			w.assertStaysCordoned(nodes[0])
			w.awaitNode(nodes[1], "given back", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
		}
	}
	w.release("held")
	w.openBudget("guarded")

	w.awaitNothingLeft(nodes[0])
	w.awaitDrained("second")
	w.awaitNoEvacuations()
	w.assertUnschedulable(nodes[1], true)
}

func cordoned(n *corev1.Node) bool { return n.Spec.Unschedulable }

// A node is down for a reboot under its pods and never comes back, so that somebody
// deletes its Machine. The locks that its own drain has taken are for others.
func TestLongANodeThatNeverCameBackIsDeletedWithItsMachine(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	node := w.running("m")[0]
	w.guarded(node, "stays")
	w.maintainInPlace("upgrade", minutes, node)
	w.awaitDrained("upgrade")
	w.awaitLock(w.holder("upgrade", node), "stays")

	w.deleteMachines(node)

	w.awaitGone("stays")
	w.awaitNothingLeft(node)
	w.awaitLock("", "stays")
	w.forget("upgrade")
}
