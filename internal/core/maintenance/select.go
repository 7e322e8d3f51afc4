package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Select returns, by name, the nodes that matter for a pass: those that some
// maintenance matches whose work is not over, and those that still carry our
// ledger, keep DaemonSet pods away or announce a maintenance of ours. The pods of
// other nodes need not be read.
func Select(maintenances []*v1alpha1.NodeMaintenance, nodes []*corev1.Node) []*corev1.Node {
	all := readMaintenances(maintenances)
	var selected []*corev1.Node
	for _, node := range nodes {
		if carriesTrace(node) || slices.ContainsFunc(all, func(m *maintenance) bool { return m.selects(node) }) {
			selected = append(selected, node)
		}
	}
	slices.SortFunc(selected, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return selected
}

// Matching returns those of the nodes that a selector of a NodeMaintenance
// matches, in their order. The error names the field that cannot be understood.
func Matching(selector *corev1.NodeSelector, nodes []*corev1.Node) ([]*corev1.Node, error) {
	compiled, err := compileSelector(selector)
	if err != nil {
		return nil, err
	}
	var matching []*corev1.Node
	for _, node := range nodes {
		if compiled.Match(node) {
			matching = append(matching, node)
		}
	}
	return matching, nil
}

// carriesTrace returns true if a maintenance has left something on the node.
func carriesTrace(node *corev1.Node) bool {
	if _, ledger := node.Annotations[v1alpha1.CordonAnnotation]; ledger || suppressionOn(node) != (suppression{}) {
		return true
	}
	for n := range node.Status.Conditions {
		if node.Status.Conditions[n].Reason == v1alpha1.ReasonNodeMaintenance {
			return true
		}
	}
	return false
}
