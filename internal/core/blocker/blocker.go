// Package blocker says why a pod that has to leave its node does not, in words
// that an administrator can act on.
//
// It reads facts and never decides what happens next. The since of a blocker
// comes from the objects, never from the clock, so that it does not flap.
package blocker

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Facts is what is known of one pod that has to leave.
type Facts struct {
	// Now is the time of the pass.
	Now time.Time
	// Pod is the pod.
	Pod *corev1.Pod
	// Node is the pod's node.
	Node *corev1.Node
	// DrainStarted is when the oldest maintenance of the node began to drain; a
	// pod created later came back. Zero if unknown.
	DrainStarted time.Time
	// Evacuation is the pod's Evacuation, nil if there is none yet.
	Evacuation *v1alpha1.Evacuation
	// WaitCompleted is true if the pod is waited for and not evacuated.
	WaitCompleted bool
	// Budgets are the PodDisruptionBudgets of the pod's namespace.
	Budgets []*policyv1.PodDisruptionBudget
}
