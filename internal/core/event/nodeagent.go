package event

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Scene is where something happens to a static pod: its node, and the maintenance for
// which it does; nil if there is none.
type Scene struct {
	Node        *corev1.Node
	Maintenance *v1alpha1.NodeMaintenance
}

// StaticPodHeld tells that the manifest of a static pod was put aside.
func StaticPodHeld(s Scene, message string) []Event {
	return s.tell(corev1.EventTypeNormal, v1alpha1.EventStaticPodHeld, "Hold", message)
}

// StaticPodRestored tells that the manifest of a static pod is back.
func StaticPodRestored(s Scene, message string) []Event {
	return s.tell(corev1.EventTypeNormal, v1alpha1.EventStaticPodRestored, "Restore", message)
}

// ManifestReplaced warns that a manifest was written while it was put aside.
func ManifestReplaced(s Scene, message string) []Event {
	return s.tell(corev1.EventTypeWarning, v1alpha1.EventManifestReplaced, "Hold", message)
}

// ManifestSuperseded warns that a manifest that was put aside is not put back.
func ManifestSuperseded(s Scene, message string) []Event {
	return s.tell(corev1.EventTypeWarning, v1alpha1.EventManifestSuperseded, "Restore", message)
}

// ManifestGone warns that a manifest is not where it was put aside.
func ManifestGone(s Scene, message string) []Event {
	return s.tell(corev1.EventTypeWarning, v1alpha1.EventManifestGone, "Hold", message)
}

func (s Scene) tell(kind, reason, action, message string) []Event {
	var events []Event
	if s.Node != nil {
		events = append(events, ofNode(s.Node, kind, reason, action, message))
	}
	if s.Maintenance != nil {
		events = append(events, ofMaintenance(s.Maintenance, kind, reason, action, message))
	}
	return slices.Clip(events)
}
