package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Two nodes are replaced one after the other: their Machines are deleted, and somebody makes others.
func TestRolloutReplacesMachines(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	nodes := w.running("one", "two")
	w.pods(nodes[0], pod{name: "web"})
	spec := draining(nil, 1)
	spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions = []corev1.NodeSelectorRequirement{
		{Key: cluster.PoolLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{w.cluster.Pool()}},
	}
	spec.After = v1alpha1.AfterReplace
	w.rollOut("machines", spec)

	w.awaitAbsent(&corev1.Node{}, nodes[0])
	w.awaitGone("web")
	w.awaitWorking("machines", map[string]string{nodes[0]: v1alpha1.RolloutNodeReplacing})
	w.awaitMachine(nodes[1], "left alone", func(m *v1alpha1.Machine) bool { return m.DeletionTimestamp == nil })
	w.awaitEvent("machines", v1alpha1.EventRolloutMachineDeleted)

	w.running("three")
	w.awaitAbsent(&corev1.Node{}, nodes[1])
	w.running("four")
	w.awaitRolloutComplete("machines", v1alpha1.ReasonRolloutComplete)
	w.awaitNothingLeft(nodes...)
	w.eventually("no NodeMaintenance left", func() (bool, any) {
		left := w.maintenancesOf("machines")
		return len(left) == 0, left
	})
}
