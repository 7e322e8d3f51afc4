package kube

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// StripBudget returns a budget without its managed fields. One that bears a lock
// keeps when it was last written: that says when a lock ends that nobody can read.
// The result shares maps and slices with the argument.
func StripBudget(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	stripped := *budget
	stripped.ManagedFields = nil
	if _, locked := budget.Annotations[v1alpha1.LockAnnotation]; locked {
		for _, entry := range budget.ManagedFields {
			stripped.ManagedFields = append(stripped.ManagedFields, metav1.ManagedFieldsEntry{
				Operation: entry.Operation, Subresource: entry.Subresource, Time: entry.Time,
			})
		}
	}
	return &stripped
}
