package event

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// NodeShutdownDetected tells that a node shuts down, or is going to.
func NodeShutdownDetected(node *corev1.Node, message string) Event {
	return ofNode(node, corev1.EventTypeWarning, v1alpha1.EventNodeShutdownDetected, "Shutdown", message)
}

// NodeShutdownCancelled tells that a node does not shut down after all.
func NodeShutdownCancelled(node *corev1.Node, message string) Event {
	return ofNode(node, corev1.EventTypeNormal, v1alpha1.EventNodeShutdownCancelled, "Shutdown", message)
}

// NodeShutdownReleased tells that nobody holds a shutdown up any more, and what was left.
func NodeShutdownReleased(node *corev1.Node, message string) Event {
	return ofNode(node, corev1.EventTypeNormal, v1alpha1.EventNodeShutdownReleased, "Shutdown", message)
}

// NodeShutdownEnded tells that a maintenance is over, because the shutdown for which it
// was made is.
func NodeShutdownEnded(m *v1alpha1.NodeMaintenance, message string) Event {
	return ofMaintenance(m, corev1.EventTypeNormal, v1alpha1.EventNodeShutdownEnded, "Complete", message)
}

// NodeShutdownDrained tells for which shutdown a maintenance is, and until when pods have time.
func NodeShutdownDrained(m *v1alpha1.NodeMaintenance) Event {
	message := m.Spec.Reason
	if d := m.Spec.Deadline; d != nil {
		message += fmt.Sprintf("; its pods have until %s", d.Time.UTC().Format(time.RFC3339))
	}
	return ofMaintenance(m, corev1.EventTypeNormal, v1alpha1.EventNodeShutdownDetected, "Create", message+".")
}
