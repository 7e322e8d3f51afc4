package event

import (
	"fmt"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// RightsMissing warns on the leader's Lease that a part of the manager lacks rights and does not
// run.
func RightsMissing(namespace, lease, part, rights string) Event {
	return warning(v1alpha1.EventRightsMissing, "Lead").onLease(namespace, lease,
		fmt.Sprintf("Part %s of the manager does not run: its account may not %s. It starts when the rights are granted.", part, rights))
}
