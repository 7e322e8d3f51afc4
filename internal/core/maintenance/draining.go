package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// Reason is why the DaemonSet pods of a node leave: what the maintenance that
// drains it gives as its reason, or else its name. It is empty if there is none.
func Reason(node *corev1.Node, maintenances []*v1alpha1.NodeMaintenance) string {
	m := Draining(node, maintenances)
	if m == nil {
		return ""
	}
	return cmp.Or(m.Spec.Reason, m.Name)
}

// Draining is the oldest maintenance in stage Drain that holds a node; nil if there
// is none, or if it cannot be read who holds the node.
func Draining(node *corev1.Node, maintenances []*v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
	holders := cordon.Holders(node)
	var oldest *v1alpha1.NodeMaintenance
	for _, m := range maintenances {
		if effectiveStage(m) == v1alpha1.StageDrain && slices.Contains(holders, m.Name) && (oldest == nil || compareAge(m, oldest) < 0) {
			oldest = m
		}
	}
	return oldest
}
