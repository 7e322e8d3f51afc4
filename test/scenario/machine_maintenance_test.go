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

func cordoned(n *corev1.Node) bool { return n.Spec.Unschedulable }
