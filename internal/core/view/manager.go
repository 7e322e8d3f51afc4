package view

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// managerPatience is for how long the leader may be silent before that is told. Another one
// takes over within 20 s.
const managerPatience = time.Minute

// ManagerNote says that no manager of Ebbtide acts, and what works without one, by the Lease
// of their leader. It is empty if one acts. Clocks that differ by less than a minute make no
// difference.
func ManagerNote(lease *coordinationv1.Lease, now time.Time) string {
	silent := "has never renewed"
	if at := lease.Spec.RenewTime; at != nil {
		age := now.Sub(at.Time)
		if age < managerPatience {
			return ""
		}
		silent = fmt.Sprintf("has not renewed for %s", age.Round(time.Second))
	}
	return fmt.Sprintf("No manager of Ebbtide acts: its leader %s the Lease %s/%s. Nothing is drained or given back meanwhile. "+
		"kubectl drain, cordon and uncordon work.", silent, lease.Namespace, lease.Name)
}
