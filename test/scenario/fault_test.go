package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Completing or deleting a maintenance stops what has not begun: the pod behind the budget keeps
// running, its Evacuation goes and the node takes pods again.
func TestMaintenanceIsCancelledInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(w *world){
		"completed": func(w *world) { w.setStage("upgrade", v1alpha1.StageComplete) },
		"deleted": func(w *world) {
			w.deleteMaintenance("upgrade")
			w.awaitMaintenanceGone("upgrade")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			node := w.nodes("one")[0]
			w.pods(node, pod{name: "protected", neverEvicted: true}, pod{name: "free"})
			w.maintain("upgrade", v1alpha1.StageDrain, []string{node})
			w.awaitGone("free")
			w.awaitEvacuation("protected")

			cancel(w)

			w.awaitNoEvacuations()
			w.awaitHolders(node)
			w.assertUnschedulable(node, false)
			w.awaitPod("protected", "running", func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
		})
	}
}

// Ten pods under a budget of one leave one by one; the budget is never exceeded,
// as seen from outside.
func TestBudgetOfOneIsNeverExceeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("old", "new")
	w.cordon(nodes[1], true)
	w.deployment("web", 10)
	w.budget("web", 1)
	w.awaitPods("10 ready pods on the old node", readyPods(10))
	w.cordon(nodes[1], false)
	availability := w.watchAvailability("web", 9)

	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])

	w.awaitDrained("upgrade")
	w.awaitPods("10 ready pods on the new node", func(pods []corev1.Pod) bool {
		for i := range pods {
			if pods[i].Spec.NodeName != nodes[1] {
				return false
			}
		}
		return readyPods(10)(pods)
	})
	availability.assertKept()
}
