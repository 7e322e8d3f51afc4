package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// EvictionNotice recommends a NodeMaintenance to clients that evict the pods of a node (KEP-4212
// wants kubectl drain to give way to it). It is empty if a NodeMaintenance selects or holds the
// node, or if the node could not be read.
func EvictionNotice(node *corev1.Node, maintenances []*v1alpha1.NodeMaintenance) string {
	if node == nil || node.Annotations[v1alpha1.CordonAnnotation] != "" {
		return ""
	}
	for _, m := range maintenances {
		if (MaintenanceChange{New: m}).Ends() {
			continue
		}
		// An invalid selector drains nothing.
		if matching, err := maintenance.Matching(&m.Spec, []*corev1.Node{node}); err == nil && len(matching) > 0 {
			return ""
		}
	}
	return fmt.Sprintf("no NodeMaintenance selects node %[1]s. To drain it with Ebbtide, create a NodeMaintenance with spec "+
		`{nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [%[1]q]}]}]}, stage: Drain}`+
		" cordons the node, moves its pods in order, says what blocks it, and at stage Complete gives the node back. "+
		"This is said once a day for each node; --eviction-notice=false of the manager turns it off", node.Name)
}
