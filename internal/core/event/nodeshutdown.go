package event

import (
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
