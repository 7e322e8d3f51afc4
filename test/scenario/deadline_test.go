package scenario

import (
	corev1 "k8s.io/api/core/v1"
)

// undeleted is true of a pod that nobody has deleted.
func undeleted(p *corev1.Pod) bool { return p.DeletionTimestamp == nil }
