package event

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// EvictionControllerActive tells, on the Lease of Ebbtide's leader, that Ebbtide answers
// EvictionRequests from now on.
func EvictionControllerActive(namespace, lease, message string) Event {
	return ofLease(namespace, lease, v1alpha1.EventEvictionControllerActive, message)
}

// EvictionControllerAside tells, on the Lease of Ebbtide's leader, that Ebbtide leaves
// EvictionRequests to another controller.
func EvictionControllerAside(namespace, lease, message string) Event {
	return ofLease(namespace, lease, v1alpha1.EventEvictionControllerAside, message)
}

func ofLease(namespace, lease, reason, message string) Event {
	return Event{
		Regarding: corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: namespace, Name: lease},
		Type:      corev1.EventTypeNormal, Reason: reason, Action: "Lead", Message: message,
	}
}
