package check

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/right"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ebbtide.dev,verbs=get,namespace=release

// mayAct checks that no part of the leader lacks rights. acts finds a missing leader.
func (c Check) mayAct(ctx context.Context) *failure {
	lease := &coordinationv1.Lease{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: kube.LeaderLease}, lease)
	if client.IgnoreNotFound(err) != nil {
		return c.explain(err, "", "")
	}
	missing := right.ParseLabel(lease.Labels[v1alpha1.MissingRightsLabel])
	if len(missing) == 0 {
		return nil
	}
	return &failure{fmt.Sprintf("these parts do not run: %v", missing), command.Of("find the missing rights: "+
		"kubectl logs -n %s -l app.kubernetes.io/name=ebbtide --tail=-1 | grep 'lacks rights'; upgrade the chart, which grants them to its ServiceAccount, "+
		"or check the changes of its ClusterRoles and bindings", c.Namespace)}
}
