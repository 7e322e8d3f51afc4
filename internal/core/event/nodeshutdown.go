package event

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Events about shutdowns of nodes.
var (
	NodeShutdownDetected  = warning(v1alpha1.EventNodeShutdownDetected, "Shutdown").onNode
	NodeShutdownCancelled = normal(v1alpha1.EventNodeShutdownCancelled, "Shutdown").onNode
	NodeShutdownReleased  = normal(v1alpha1.EventNodeShutdownReleased, "Shutdown").onNode
	NodeShutdownEnded     = normal(v1alpha1.EventNodeShutdownEnded, "Complete").onMaintenance
)

// NodeShutdownDrained reports for which shutdown a maintenance is, and until when pods have time.
func NodeShutdownDrained(m *v1alpha1.NodeMaintenance) Event {
	message := m.Spec.Reason
	if d := m.Spec.Deadline; d != nil {
		message += fmt.Sprintf("; its pods have until %s", d.Time.UTC().Format(time.RFC3339))
	}
	return normal(v1alpha1.EventNodeShutdownDetected, "Create").onMaintenance(m, message+".")
}

// NodeRebooting reports that the agent of a node reboots it for a maintenance.
func NodeRebooting(node *corev1.Node, maintenance string) Event {
	return normal(v1alpha1.EventNodeRebooting, "Reboot").onNode(node,
		fmt.Sprintf("The node is drained and reboots for NodeMaintenance %s.", excerpt.Line(maintenance, maxNamed)))
}
