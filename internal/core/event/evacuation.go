package event

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// EvacuatorActivated tells that the first evacuator got its turn.
func EvacuatorActivated(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeNormal, v1alpha1.EventEvacuatorActivated, message)
}

// EvacuatorReplaced tells that an evacuator took over, from whom and why.
func EvacuatorReplaced(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeWarning, v1alpha1.EventEvacuatorReplaced, message)
}

// EvacuatorRestarted tells that an evacuator's report was not believed.
func EvacuatorRestarted(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeWarning, v1alpha1.EventEvacuatorRestarted, message)
}

// EvacuatorReturned tells that an evacuator came back and put off the eviction.
func EvacuatorReturned(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeNormal, v1alpha1.EventEvacuatorReturned, message)
}

// EvacuatorsIgnored tells which registrations of evacuators are left out, and why.
func EvacuatorsIgnored(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeWarning, v1alpha1.EventEvacuatorsIgnored, message)
}

// EvictionWithdrawn tells that nobody calls the eviction API for the pod any more.
func EvictionWithdrawn(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeNormal, v1alpha1.EventEvictionWithdrawn, message)
}

// EvacuationGoesOn tells that an evacuator goes on, though the Eviction is over that the
// Evacuation was for.
func EvacuationGoesOn(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeNormal, v1alpha1.EventEvacuationGoesOn, message)
}

// PodEvicted tells that a pod was evicted after its evacuators, and why.
func PodEvicted(e *v1alpha1.Evacuation, message string) Event {
	return ofEvacuation(e, corev1.EventTypeNormal, v1alpha1.EventPodEvicted, message)
}

func ofEvacuation(e *v1alpha1.Evacuation, kind, reason, message string) Event {
	return Event{
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Evacuation",
			Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion,
		},
		Type: kind, Reason: reason, Action: "Evacuate", Message: message,
	}
}
