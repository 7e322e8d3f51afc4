package event

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// MachineHeldByHooks tells which hooks a Machine waits for.
func MachineHeldByHooks(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventHeldByHooks, message)
}

// MachineHeldUp warns of what holds a Machine up that does not pass by itself.
// The reason is that of the condition.
func MachineHeldUp(m *v1alpha1.Machine, reason, message string) Event {
	return ofMachine(m, corev1.EventTypeWarning, reason, message)
}

// MachineDrainStarted tells that pods begin to leave the Node.
func MachineDrainStarted(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventDrainStarted, message)
}

// MachineDrainCompleted tells that every pod has left that has to.
func MachineDrainCompleted(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventDrainCompleted, message)
}

// MachineDrainTimedOut warns of the pods that go with the Machine.
func MachineDrainTimedOut(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeWarning, v1alpha1.EventDrainTimedOut, message)
}

// MachineDrainSkipped tells why the Node is not drained.
func MachineDrainSkipped(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventDrainSkipped, message)
}

// MachineVolumesAttached tells which volumes a Machine waits for.
func MachineVolumesAttached(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventVolumesAttached, message)
}

// MachineVolumesDetached tells that no volume is attached that matters.
func MachineVolumesDetached(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventVolumesDetached, message)
}

// MachineVolumesTimedOut warns of the volumes that were not detached in time.
func MachineVolumesTimedOut(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeWarning, v1alpha1.EventVolumeDetachTimedOut, message)
}

// MachineVolumesSkipped tells why no volume is waited for.
func MachineVolumesSkipped(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventVolumeDetachSkipped, message)
}

// MachineInfrastructureDeleted tells that the infrastructure is gone.
func MachineInfrastructureDeleted(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventInfrastructureDeleted, message)
}

// MachineBootstrapDeleted tells that the bootstrap config is gone.
func MachineBootstrapDeleted(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventBootstrapDeleted, message)
}

// MachineNodeDeleted tells that the Node is gone.
func MachineNodeDeleted(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeNormal, v1alpha1.EventNodeDeleted, message)
}

// MachineNodeLeft warns that the Node is left in the cluster, and why.
func MachineNodeLeft(m *v1alpha1.Machine, message string) Event {
	return ofMachine(m, corev1.EventTypeWarning, v1alpha1.EventNodeLeft, message)
}

func ofMachine(m *v1alpha1.Machine, kind, reason, message string) Event {
	action := "Create"
	if m.DeletionTimestamp != nil {
		action = "Delete"
	}
	return Event{
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Machine",
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		},
		Type: kind, Reason: reason, Action: action, Message: message,
	}
}
