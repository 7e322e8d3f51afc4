package event

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// LocksHeld tells, on the maintenance and on the node, that every budget is locked
// whose pods stay.
func LocksHeld(r *v1alpha1.DrainRecord, message string) []Event {
	return ofDrain(r, corev1.EventTypeNormal, v1alpha1.EventLocksHeld, "Lock", message)
}

// LocksReleased tells, on the maintenance and on the node, that the maintenance has
// no lock any more.
func LocksReleased(r *v1alpha1.DrainRecord, message string) []Event {
	return ofDrain(r, corev1.EventTypeNormal, v1alpha1.EventLocksReleased, "Unlock", message)
}

// LockLost warns, on the maintenance and on the node, that a lock which it had is
// gone or somebody else's.
func LockLost(r *v1alpha1.DrainRecord, message string) []Event {
	return ofDrain(r, corev1.EventTypeWarning, v1alpha1.EventLockLost, "Lock", message)
}

// LockTimedOut warns, on the maintenance and on the node, that a budget could not
// be locked in time, and what becomes of its pods.
func LockTimedOut(r *v1alpha1.DrainRecord, message string) []Event {
	return ofDrain(r, corev1.EventTypeWarning, v1alpha1.EventLockTimedOut, "Lock", message)
}

// PodsStayAfterAll tells, on the maintenance and on the node, that a budget which was
// given up is to be locked again.
func PodsStayAfterAll(r *v1alpha1.DrainRecord, message string) []Event {
	return ofDrain(r, corev1.EventTypeNormal, v1alpha1.EventPodsStayAfterAll, "Lock", message)
}

// NodeReturned tells, on the maintenance and on the node, that the node is back and
// needs its locks no more.
func NodeReturned(r *v1alpha1.DrainRecord, message string) []Event {
	return ofDrain(r, corev1.EventTypeNormal, v1alpha1.EventNodeReturned, "Unlock", message)
}

// LockRanOut warns, on the maintenance and on the node, that a lock has ended
// before its pods were ready again.
func LockRanOut(r *v1alpha1.DrainRecord, message string) []Event {
	return ofDrain(r, corev1.EventTypeWarning, v1alpha1.EventLockRanOut, "Unlock", message)
}

// PodDeletedPastBudget warns, on the pod and on the maintenance, that a pod was
// deleted although its budget did not allow it. It is for the audit.
func PodDeletedPastBudget(r *v1alpha1.DrainRecord, pod *corev1.Pod, message string) []Event {
	regarding := corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
	deleted := Event{
		Regarding: regarding, Type: corev1.EventTypeWarning, Reason: v1alpha1.EventPodDeletedPastBudget, Action: "Delete", Message: message,
	}
	audit := deleted
	audit.Regarding = maintenanceOf(r)
	return []Event{deleted, audit}
}

// LockUnreadable warns, on a budget, that nobody can read its lock.
func LockUnreadable(b *policyv1.PodDisruptionBudget, message string) Event {
	return ofBudget(b, corev1.EventTypeWarning, v1alpha1.EventLockUnreadable, message)
}

// StrayLockRemoved warns, on a budget, that the lock of a drain was removed which
// nobody remembers.
func StrayLockRemoved(b *policyv1.PodDisruptionBudget, message string) Event {
	return ofBudget(b, corev1.EventTypeWarning, v1alpha1.EventStrayLockRemoved, message)
}

// LockEnded tells, on a budget, that its lock has ended and was removed.
func LockEnded(b *policyv1.PodDisruptionBudget, message string) Event {
	return ofBudget(b, corev1.EventTypeNormal, v1alpha1.EventLockEnded, message)
}

// ofDrain returns the same event on the maintenance of a record and on its node.
func ofDrain(r *v1alpha1.DrainRecord, kind, reason, action, message string) []Event {
	var events []Event
	for _, regarding := range []corev1.ObjectReference{
		maintenanceOf(r),
		// A record does not know the UID of its node; kubectl describe finds events of
		// nodes by their name as well.
		{APIVersion: "v1", Kind: "Node", Name: r.Name, UID: types.UID(r.Name)},
	} {
		events = append(events, Event{Regarding: regarding, Type: kind, Reason: reason, Action: action, Message: message})
	}
	return events
}

func maintenanceOf(r *v1alpha1.DrainRecord) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "NodeMaintenance",
		Name: r.Spec.MaintenanceRef.Name, UID: r.Spec.MaintenanceRef.UID,
	}
}

func ofBudget(b *policyv1.PodDisruptionBudget, kind, reason, message string) Event {
	return Event{
		Regarding: corev1.ObjectReference{
			APIVersion: "policy/v1", Kind: "PodDisruptionBudget",
			Namespace: b.Namespace, Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion,
		},
		Type: kind, Reason: reason, Action: "Unlock", Message: message,
	}
}
