package nodeshutdown

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// concerned are the nodes of which an event can change a decision. It is about an object
// that has come, has changed, or is gone; old is nil, both are given, or now is nil.
type concerned[T client.Object] func(ctx context.Context, old, now T) []string

func handlerOf[T client.Object](of concerned[T]) handler.TypedFuncs[T, reconcile.Request] {
	var none T
	enqueue := func(ctx context.Context, q queue, old, now T) {
		for _, node := range of(ctx, old, now) {
			q.Add(requestOf(node))
		}
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], q queue) { enqueue(ctx, q, none, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q queue) {
			enqueue(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q queue) { enqueue(ctx, q, e.Object, none) },
	}
}

func requestOf(node string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}
}

func (r *reconciler) sources(c cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(c, &v1alpha1.NodeAgent{}, handlerOf(ofAgent)),
		source.Kind(c, &corev1.Node{}, handlerOf(ofNode)),
		source.Kind(c, &v1alpha1.NodeMaintenance{}, handlerOf(ofMaintenance)),
	}
}

// ofAgent drops what an agent says of other things than shutdowns.
func ofAgent(_ context.Context, old, now *v1alpha1.NodeAgent) []string {
	switch {
	case old == nil:
		return []string{now.Name}
	case now == nil:
		return []string{old.Name}
	case old.Status.BootID == now.Status.BootID && equality.Semantic.DeepEqual(old.Status.Shutdown, now.Status.Shutdown):
		return nil
	}
	return []string{now.Name}
}

// ofNode names a node with an agent that has booted, is ready or not any more, or is gone.
func ofNode(_ context.Context, old, now *corev1.Node) []string {
	switch {
	case now == nil:
		return []string{old.Name}
	case old == nil:
		return nil // Its agent has an event of its own.
	case old.Status.NodeInfo.BootID == now.Status.NodeInfo.BootID && ready(old) == ready(now):
		return nil
	}
	return []string{now.Name}
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ofMaintenance names the node of one that was made for its shutdown, and is gone.
func ofMaintenance(_ context.Context, old, now *v1alpha1.NodeMaintenance) []string {
	if now != nil {
		return nil
	}
	if node := maintenance.OfShutdown(old); node != "" {
		return []string{node}
	}
	return nil
}
