package drainlock

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Facts is what is known of a node that waits for its locks.
type Facts struct {
	// Now is the time of the pass.
	Now time.Time
	// Record is the record of the node; nil if there is none.
	Record *v1alpha1.DrainRecord
	// Pods are all pods of the node.
	Pods []*corev1.Pod
	// Budgets are those of the namespaces of the pods that stay.
	Budgets []*policyv1.PodDisruptionBudget
	// Longest is how long a lock may hold; see budget.LockOf.
	Longest time.Duration
}

// Blockers returns one blocker for each budget that is needed and cannot be
// locked now, in the order of namespace and name.
func Blockers(f Facts) []v1alpha1.Blocker { return nil }

// Waiting says in a few words which locks a node waits for; empty if it has all,
// or if there is no record.
func Waiting(f Facts) string { return "" }
