package event

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// StaticPodHeld tells that the manifest of a static pod was put aside.
func StaticPodHeld(node *corev1.Node, message string) []Event {
	return ofAgent(node, corev1.EventTypeNormal, v1alpha1.EventStaticPodHeld, "Hold", message)
}

// StaticPodRestored tells that the manifest of a static pod is back.
func StaticPodRestored(node *corev1.Node, message string) []Event {
	return ofAgent(node, corev1.EventTypeNormal, v1alpha1.EventStaticPodRestored, "Restore", message)
}

// ManifestReplaced warns that a manifest was written while it was put aside.
func ManifestReplaced(node *corev1.Node, message string) []Event {
	return ofAgent(node, corev1.EventTypeWarning, v1alpha1.EventManifestReplaced, "Hold", message)
}

// ManifestSuperseded warns that a manifest that was put aside is not put back.
func ManifestSuperseded(node *corev1.Node, message string) []Event {
	return ofAgent(node, corev1.EventTypeWarning, v1alpha1.EventManifestSuperseded, "Restore", message)
}

// ManifestGone warns that a manifest is not where it was put aside.
func ManifestGone(node *corev1.Node, message string) []Event {
	return ofAgent(node, corev1.EventTypeWarning, v1alpha1.EventManifestGone, "Hold", message)
}

// ofAgent is an event on the agent's own Node, if there is one: it writes none on anything else.
func ofAgent(node *corev1.Node, kind, reason, action, message string) []Event {
	if node == nil {
		return nil
	}
	return []Event{ofNode(node, kind, reason, action, message)}
}
