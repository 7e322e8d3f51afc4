package event

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// PodDetached tells that a pod was taken out of its ReplicaSet to be replaced.
func PodDetached(pod *corev1.Pod, message string) Event {
	return ofSurgingPod(pod, v1alpha1.EventPodDetached, message)
}

// PodGivenBack tells that a detached pod may go back to its ReplicaSet, and why.
func PodGivenBack(pod *corev1.Pod, message string) Event {
	return ofSurgingPod(pod, v1alpha1.EventPodGivenBack, message)
}

// DetachedPodDeleted tells that a detached pod was deleted because it could go
// back to no ReplicaSet.
func DetachedPodDeleted(pod *corev1.Pod, message string) Event {
	return ofSurgingPod(pod, v1alpha1.EventDetachedPodDeleted, message)
}

// NotSurged warns that a pod is not replaced before it leaves, and why.
func NotSurged(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeWarning, v1alpha1.EventNotSurged, message)
}

func ofSurgingPod(pod *corev1.Pod, reason, message string) Event {
	return Event{
		Regarding: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Type: corev1.EventTypeNormal, Reason: reason, Action: "Surge", Message: message,
	}
}
