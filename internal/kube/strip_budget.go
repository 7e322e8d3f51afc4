package kube

import (
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// StripBudget returns the parts of a budget that decisions read. The time of the last change of its
// lock is kept so that an unreadable lock expires. Locks that are too long are cut. The result
// shares maps and slices with the argument.
func StripBudget(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	stripped := &policyv1.PodDisruptionBudget{ObjectMeta: identity(&budget.ObjectMeta), Spec: budget.Spec, Status: budget.Status}
	stripped.Generation = budget.Generation
	lock, locked := budget.Annotations[v1alpha1.LockAnnotation]
	if !locked {
		return stripped
	}
	if len(lock) > v1alpha1.MaxLockBytes {
		// A substring would keep the whole text in memory.
		lock = strings.Clone(lock[:v1alpha1.MaxLockBytes+1])
	}
	stripped.Annotations = map[string]string{v1alpha1.LockAnnotation: lock}
	for _, entry := range budget.ManagedFields {
		stripped.ManagedFields = append(stripped.ManagedFields, metav1.ManagedFieldsEntry{
			Operation: entry.Operation, Subresource: entry.Subresource, Time: entry.Time,
		})
	}
	return stripped
}
