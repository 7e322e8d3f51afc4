package event

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// BridgeWaiting tells what the drain of another controller's Machine waits for.
func BridgeWaiting(machine corev1.ObjectReference, message string) Event {
	return ofBridge(machine, corev1.EventTypeNormal, v1alpha1.EventBridgeWaiting, message)
}

// BridgeDraining tells that the node of such a Machine is drained, and by what.
func BridgeDraining(machine corev1.ObjectReference, message string) Event {
	return ofBridge(machine, corev1.EventTypeNormal, v1alpha1.EventBridgeDraining, message)
}

// BridgeBlocked warns that something in the way of the drain does not pass by itself.
func BridgeBlocked(machine corev1.ObjectReference, message string) Event {
	return ofBridge(machine, corev1.EventTypeWarning, v1alpha1.EventBridgeBlocked, message)
}

// BridgeDone tells that its node is drained, and that its controller goes on.
func BridgeDone(machine corev1.ObjectReference, message string) Event {
	return ofBridge(machine, corev1.EventTypeNormal, v1alpha1.EventBridgeDone, message)
}

// BridgeSkipped tells why its node is not drained.
func BridgeSkipped(machine corev1.ObjectReference, message string) Event {
	return ofBridge(machine, corev1.EventTypeNormal, v1alpha1.EventBridgeSkipped, message)
}

// BridgeGivenUp warns that the time was over before its node was drained.
func BridgeGivenUp(machine corev1.ObjectReference, message string) Event {
	return ofBridge(machine, corev1.EventTypeWarning, v1alpha1.EventBridgeGivenUp, message)
}

func ofBridge(machine corev1.ObjectReference, kind, reason, message string) Event {
	return Event{Regarding: machine, Type: kind, Reason: reason, Action: "Drain", Message: message}
}
