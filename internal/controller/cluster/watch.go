package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/workload"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *reconciler) sources(c cache.Cache, registry *workload.Registry) []source.Source {
	return []source.Source{
		source.Kind(c, &v1alpha1.Cluster{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.Cluster]{}),
		source.Kind(c, &v1alpha1.Machine{}, ofMachines()),
		source.Func(func(_ context.Context, q queue) error {
			registry.OnChange(func(cluster types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: cluster}) })
			return nil
		}),
	}
}

// ofMachines enqueues the Cluster of a Machine for changes other than of its status.
func ofMachines() handler.TypedFuncs[*v1alpha1.Machine, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.Machine, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.Machine], q queue) {
			q.Add(clusterOf(e.Object))
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.Machine], q queue) {
			q.Add(clusterOf(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.Machine], q queue) {
			relabelled := lifecycle.InControlPlane(e.ObjectOld) != lifecycle.InControlPlane(e.ObjectNew)
			if relabelled || e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero() {
				q.Add(clusterOf(e.ObjectNew))
			}
		},
	}
}

func clusterOf(machine *v1alpha1.Machine) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}}
}
