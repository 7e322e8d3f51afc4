package event

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// RightsMissing warns, on the Lease of Ebbtide's leader, that a part of the manager does not run
// because its account lacks rights.
func RightsMissing(namespace, lease, part, rights string) Event {
	e := ofLease(namespace, lease, v1alpha1.EventRightsMissing,
		fmt.Sprintf("Part %s of the manager does not run: its account may not %s. It starts when the rights are granted.", part, rights))
	e.Type = corev1.EventTypeWarning
	return e
}
