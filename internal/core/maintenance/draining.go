package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// Reason returns the reason or name of the maintenance that drains a node; empty if there is none.
func Reason(node *corev1.Node, maintenances []*v1alpha1.NodeMaintenance) string {
	m := Draining(node, maintenances)
	if m == nil {
		return ""
	}
	return cmp.Or(m.Spec.Reason, m.Name)
}

// Draining returns the oldest maintenance in Drain that holds a node; nil if there is none.
func Draining(node *corev1.Node, maintenances []*v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
	holders := cordon.Holders(node)
	var oldest *v1alpha1.NodeMaintenance
	for _, m := range maintenances {
		if Stage(m) == v1alpha1.StageDrain && slices.Contains(holders, m.Name) && (oldest == nil || CompareAge(m, oldest) < 0) {
			oldest = m
		}
	}
	return oldest
}
