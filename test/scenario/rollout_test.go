package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// Four nodes are upgraded by somebody who waits for drained nodes, one at a time. Then all of them
// take pods again, and the rollout is complete.
func TestRolloutUpgradesOneNodeAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three", "four")
	for _, node := range nodes {
		w.pods(node, pod{name: "web-" + node[len(w.prefix):]})
	}
	work := w.work(nodes)
	w.rollOut("kubelet", upgrading(nodes, 1))

	w.awaitRolloutComplete("kubelet", v1alpha1.ReasonRolloutComplete)
	for _, node := range nodes {
		w.awaitNode(node, "upgraded and in service", func(n *corev1.Node) bool {
			return !n.Spec.Unschedulable && n.Status.NodeInfo.KubeletVersion == newKubelet
		})
		w.awaitGone("web-" + node[len(w.prefix):])
	}
	work.assertAtMost(1)
	for _, m := range w.maintenancesOf("kubelet") {
		if !maintenance.Finished(&m) || m.Labels[v1alpha1.RolloutLabel] != w.name("kubelet") {
			t.Errorf("NodeMaintenance %s of %v is in stage %s", m.Name, m.Labels, m.Spec.Stage)
		}
	}
	w.awaitEvent("kubelet", v1alpha1.EventRolloutNodeStarted)
	w.awaitEvent("kubelet", v1alpha1.EventRolloutComplete)

	w.deleteRollout("kubelet")
	w.eventually("no NodeMaintenance left", func() (bool, any) {
		left := w.maintenancesOf("kubelet")
		return len(left) == 0, left
	})
}

// A rollout that leaves nodes drained is complete when all are. A node that gets the label later
// does not take part.
func TestRolloutLeavesNodesDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("a", "b", "c", "late")
	for _, node := range nodes[:3] {
		w.label(node, "rollout", w.ns)
	}
	spec := draining(nil, 2)
	spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions = []corev1.NodeSelectorRequirement{
		{Key: "rollout", Operator: corev1.NodeSelectorOpIn, Values: []string{w.ns}},
	}
	w.pods(nodes[0], pod{name: "held", held: true})
	w.pods(nodes[1], pod{name: "held-too", held: true})
	w.rollOut("empty", spec)

	w.awaitWorking("empty", map[string]string{nodes[0]: v1alpha1.RolloutNodeDraining, nodes[1]: v1alpha1.RolloutNodeDraining})
	w.release("held")
	w.awaitWorking("empty", map[string]string{nodes[1]: v1alpha1.RolloutNodeDraining})
	w.release("held-too")
	w.awaitRolloutComplete("empty", v1alpha1.ReasonRolloutComplete)
	w.label(nodes[3], "rollout", w.ns)
	for _, node := range nodes[:3] {
		w.assertStaysCordoned(node)
	}
	w.assertUnschedulable(nodes[3], false)
}

// A node whose pod does not leave is given back in time, and tried again after the others. Then it
// has failed. When its pod may leave and the attempts are forgiven, the node is done.
func TestRolloutGivesBackANodeThatDoesNotDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	w.pods(nodes[0], pod{name: "db", neverEvicted: true})
	spec := draining(nodes, 1)
	spec.Failure.DrainTimeoutSeconds = new(int32(8))
	w.rollOut("empty", spec)

	w.awaitRolloutComplete("empty", v1alpha1.ReasonRolloutNodesFailed)
	w.awaitRollout("empty", "one failed, the other done", func(s *v1alpha1.NodeRolloutStatus) bool {
		degraded := apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRolloutDegraded)
		return s.DoneCount == 1 && len(s.Failed) == 1 && s.Failed[0].Name == nodes[0] && s.Failed[0].AttemptCount == 2 &&
			s.Failed[0].Reason == v1alpha1.RolloutNodeDrainTimedOut && degraded != nil && degraded.Status == metav1.ConditionTrue
	})
	w.awaitEvent("empty", v1alpha1.EventRolloutNodeFailed)
	w.awaitNode(nodes[0], "in service", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })

	w.deleteBudget("db")
	w.changeRollout("empty", func(spec *v1alpha1.NodeRolloutSpec) {
		spec.Nodes = []v1alpha1.RolloutNodeSpec{{Name: nodes[0], ForgivenAttemptCount: 2}}
		spec.Failure.DrainTimeoutSeconds = new(int32(600))
	})
	w.awaitRolloutComplete("empty", v1alpha1.ReasonRolloutComplete)
	w.awaitGone("db")
	w.assertStaysCordoned(nodes[0])
}

// A rollout that is aborted, or deleted, in the middle gives back the nodes that are not drained.
// Somebody may work on those that are: they stay, and their NodeMaintenances as well.
func TestRolloutThatEndsInTheMiddleKeepsDrainedNodes(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"abort": func(w *world) {
			w.changeRollout("kubelet", func(spec *v1alpha1.NodeRolloutSpec) { spec.State = v1alpha1.RolloutAborted })
			w.awaitRolloutComplete("kubelet", v1alpha1.ReasonRolloutAborted)
		},
		"delete": func(w *world) { w.deleteRollout("kubelet") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			nodes := w.nodes("drained", "stuck", "third")
			for _, node := range nodes {
				w.reports(node, oldKubelet)
			}
			w.pods(nodes[1], pod{name: "db", neverEvicted: true})
			w.rollOut("kubelet", upgrading(nodes, 2))
			w.awaitWorking("kubelet", map[string]string{nodes[0]: v1alpha1.RolloutNodeDrained, nodes[1]: v1alpha1.RolloutNodeDraining})

			end(w)
			w.awaitNode(nodes[1], "in service", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
			w.assertStaysCordoned(nodes[0])
			w.assertUnschedulable(nodes[2], false)

			w.reports(nodes[0], newKubelet)
			w.awaitNode(nodes[0], "in service", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
		})
	}
}
