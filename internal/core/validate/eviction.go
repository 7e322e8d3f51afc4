package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// EvictionNotice tells who evicts the pods of a node how a NodeMaintenance would do
// that: KEP-4212 wants kubectl drain to give way to it. It is empty if a NodeMaintenance
// has to do with the node already, one that is still to begin included, and for a
// node that is nil, because it could not be read.
func EvictionNotice(node *corev1.Node, maintenances []*v1alpha1.NodeMaintenance) string {
	if node == nil || node.Annotations[v1alpha1.CordonAnnotation] != "" {
		return ""
	}
	for _, m := range maintenances {
		if (MaintenanceChange{New: m}).Ends() {
			continue
		}
		// One that cannot be understood drains nothing.
		if matching, err := maintenance.Matching(&m.Spec, []*corev1.Node{node}); err == nil && len(matching) > 0 {
			return ""
		}
	}
	return fmt.Sprintf("no NodeMaintenance selects node %[1]s. Whoever drains it can have Ebbtide do it: a NodeMaintenance with spec "+
		`{nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [%[1]q]}]}]}, stage: Drain}`+
		" cordons the node, moves its pods in order, says what blocks it, and at stage Complete gives the node back. "+
		"This is said once a day for each node; --eviction-notice=false of the manager turns it off", node.Name)
}
