package cli

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/right"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/internal/kube"
)

// managerNotes reports that no manager acts, and which parts of it lack rights. The namespace is
// Ebbtide's. Without the right to read the Lease there are no notes.
func (c *connection) managerNotes(ctx context.Context, reached client.Client, clock *clock, namespace string) (notes []string, away bool) {
	lease := &coordinationv1.Lease{}
	if reached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kube.LeaderLease}, lease) != nil {
		return nil, false
	}
	if note := view.ManagerNote(lease, timeOf(clock)); note != "" {
		away = true
		notes = append(notes, note+" Check with "+c.kubectl("get pods -n %s -l app.kubernetes.io/name=ebbtide", namespace))
	}
	if missing := right.ParseLabel(lease.Labels[v1alpha1.MissingRightsLabel]); len(missing) > 0 {
		notes = append(notes, fmt.Sprintf("Ebbtide runs without %s because its service account lacks rights. Find them with %s | grep 'lacks rights'",
			strings.Join(right.Names(missing), ", "), c.kubectl("logs -n %s -l app.kubernetes.io/name=ebbtide --tail=-1", namespace)))
	}
	return notes, away
}
