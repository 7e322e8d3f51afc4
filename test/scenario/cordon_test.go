package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// kubectl uncordon tells who cordons a node under maintenance again, and the
// command that it names ends that.
func TestKubectlUncordonSuggestsToEndTheMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.maintain("disk", v1alpha1.StageCordon, []string{node})
	w.maintain("kernel", v1alpha1.StageCordon, []string{node})
	w.awaitHolders(node, w.name("disk"), w.name("kernel"))

	said, err := w.cluster.Kubectl(t, "uncordon", node)
	w.must("uncordon", err)

	_, command, told := strings.Cut(said, "for NodeMaintenances "+w.name("disk")+", "+w.name("kernel")+"; to end them: kubectl ")
	command, _, ends := strings.Cut(command, "; ")
	if !told || !ends {
		t.Fatalf("kubectl said %q, want how to end both maintenances", said)
	}
	said, err = w.cluster.Kubectl(t, strings.Fields(strings.ReplaceAll(command, "'", ""))...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", command, err, said)
	}
	w.awaitHolders(node)
	w.assertUnschedulable(node, false)
}

// A node that is relabelled out of the maintenance is given back and its pods
// stay; one that is relabelled into it is drained.
func TestNodesComeAndGoByLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("leaves", "comes")
	w.pods(nodes[0], pod{name: "stays", neverEvicted: true})
	w.pods(nodes[1], pod{name: "goes"})
	w.label(nodes[0], "pool", w.name("old"))
	w.maintainLabelled("upgrade", v1alpha1.StageDrain, "pool", w.name("old"))
	w.awaitEvacuation("stays")

	w.label(nodes[0], "pool", "other")
	w.label(nodes[1], "pool", w.name("old"))

	w.awaitNode(nodes[0], "schedulable", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	w.awaitGone("goes")
	w.awaitNoEvacuations()
	w.awaitPod("stays", "running", func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
	w.awaitDrained("upgrade")
}

// maintainLabelled creates a maintenance of all nodes with a label.
func (w *world) maintainLabelled(name string, stage v1alpha1.NodeMaintenanceStage, key, value string) {
	w.t.Helper()
	w.maintainTerm(name, stage, corev1.NodeSelectorRequirement{
		Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
	}, nil)
}

func (w *world) label(node, key, value string) {
	w.t.Helper()
	n := &corev1.Node{}
	w.change(n, node, func() { n.Labels[key] = value })
}
