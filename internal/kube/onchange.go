package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// OnChange returns a handler that enqueues what a change affects. Old is nil for a new object, now
// for a deleted one.
func OnChange[T client.Object](affected func(ctx context.Context, old, now T) []types.NamespacedName) handler.TypedFuncs[T, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	var none T
	enqueue := func(ctx context.Context, q queue, old, now T) {
		for _, key := range affected(ctx, old, now) {
			q.Add(reconcile.Request{NamespacedName: key})
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
