package event

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// DaemonSetPodDeleted tells that a DaemonSet pod was deleted for the maintenance
// of its node.
func DaemonSetPodDeleted(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeNormal, v1alpha1.EventDaemonSetPodDeleted, message)
}

// DaemonSetPodReleased tells that a pod, held back for the maintenance of its
// node, may go there now, and why.
func DaemonSetPodReleased(pod *corev1.Pod, message string) Event {
	return Event{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:      corev1.EventTypeNormal, Reason: v1alpha1.EventDaemonSetPodReleased, Action: "Release", Message: message,
	}
}
