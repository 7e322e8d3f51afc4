package event

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Events on the NodeMaintenance and the node of a DrainRecord, and on budgets.
var (
	LocksHeld        = normal(v1alpha1.EventLocksHeld, "Lock").onDrain
	LocksReleased    = normal(v1alpha1.EventLocksReleased, "Unlock").onDrain
	LockLost         = warning(v1alpha1.EventLockLost, "Lock").onDrain
	LockTimedOut     = warning(v1alpha1.EventLockTimedOut, "Lock").onDrain
	PodsStayAfterAll = normal(v1alpha1.EventPodsStayAfterAll, "Lock").onDrain
	NodeReturned     = normal(v1alpha1.EventNodeReturned, "Unlock").onDrain
	LockRanOut       = warning(v1alpha1.EventLockRanOut, "Unlock").onDrain
	LockUnreadable   = warning(v1alpha1.EventLockUnreadable, "Unlock").onBudget
	StrayLockRemoved = warning(v1alpha1.EventStrayLockRemoved, "Unlock").onBudget
	LockEnded        = normal(v1alpha1.EventLockEnded, "Unlock").onBudget
)

// PodDeletedPastBudget warns on the pod and the maintenance that a pod was deleted despite its
// budget.
func PodDeletedPastBudget(r *v1alpha1.DrainRecord, pod *corev1.Pod, message string) []Event {
	deleted := warning(v1alpha1.EventPodDeletedPastBudget, "Delete")
	return []Event{deleted.on(exact("v1", "Pod", pod), message), deleted.on(maintenanceOf(r), message)}
}
