package cluster

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *reconciler) sources(c cache.Cache, registry *workload.Registry) []source.Source {
	return []source.Source{
		source.Kind(c, &v1alpha1.Cluster{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.Cluster]{}),
		source.Kind(c, &v1alpha1.Machine{}, kube.OnChange(clusterOfChanged)),
		source.Func(func(_ context.Context, q queue) error {
			registry.OnChange(func(cluster types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: cluster}) })
			return nil
		}),
	}
}

// clusterOfChanged returns the Cluster of a Machine for changes other than of its status.
func clusterOfChanged(_ context.Context, old, now *v1alpha1.Machine) []types.NamespacedName {
	if old != nil && now != nil && lifecycle.InControlPlane(old) == lifecycle.InControlPlane(now) &&
		old.DeletionTimestamp.IsZero() == now.DeletionTimestamp.IsZero() {
		return nil
	}
	machine := cmp.Or(now, old)
	return []types.NamespacedName{{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}}
}
