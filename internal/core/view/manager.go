package view

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// managerPatience limits how long the leader may be silent before it is reported. Another manager
// takes over within 20 s.
const managerPatience = time.Minute

// ManagerNote returns a note if no manager holds the leader Lease, with a minute's tolerance.
func ManagerNote(lease *coordinationv1.Lease, now time.Time) string {
	silent := "has never renewed"
	if at := lease.Spec.RenewTime; at != nil {
		age := now.Sub(at.Time)
		if age < managerPatience {
			return ""
		}
		silent = fmt.Sprintf("has not renewed for %s", age.Round(time.Second))
	}
	return fmt.Sprintf("No Ebbtide manager is active: the leader %s the Lease %s/%s. Drains and completions pause; "+
		"kubectl drain, cordon and uncordon still work.", silent, lease.Namespace, lease.Name)
}
