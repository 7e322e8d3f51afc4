package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue holds the items of a controller.
type Queue[R comparable] = workqueue.TypedRateLimitingInterface[R]

// OnEvent returns a handler that calls a function for each change. Old is nil for a new object, now
// for a deleted one.
func OnEvent[T client.Object, R comparable](changed func(ctx context.Context, q Queue[R], old, now T)) handler.TypedFuncs[T, R] {
	var none T
	return handler.TypedFuncs[T, R]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], q Queue[R]) { changed(ctx, q, none, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q Queue[R]) {
			changed(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q Queue[R]) { changed(ctx, q, e.Object, none) },
	}
}

// OnChange returns a handler that enqueues what a change affects. Old and now are as in OnEvent.
func OnChange[T client.Object](affected func(ctx context.Context, old, now T) []types.NamespacedName) handler.TypedFuncs[T, reconcile.Request] {
	return OnEvent(func(ctx context.Context, q Queue[reconcile.Request], old, now T) {
		for _, key := range affected(ctx, old, now) {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	})
}

// OnInform returns a handler for an informer, otherwise like OnEvent.
func OnInform[T client.Object](changed func(old, now T)) toolscache.ResourceEventHandler {
	of := func(object any) (of T) {
		if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = missed.Obj
		}
		of, _ = object.(T)
		return of
	}
	var none T
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { changed(none, of(now)) },
		UpdateFunc: func(old, now any) { changed(of(old), of(now)) },
		DeleteFunc: func(object any) {
			// The last state of a missed deletion may be unknown.
			if old := of(object); any(old) != any(none) {
				changed(old, none)
			}
		},
	}
}
