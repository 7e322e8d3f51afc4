package evictor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

func (r *reconciler) sources(c cache.Cache, onActive func(context.Context, func(context.Context))) []source.Source {
	return []source.Source{
		source.Func(func(ctx context.Context, q eviction.Requests) error {
			onActive(ctx, func(ctx context.Context) { enqueue(ctx, r.client, q) })
			return nil
		}),
		source.Kind(c, &lifecyclev1alpha1.Eviction{}, &handler.TypedEnqueueRequestForObject[*lifecyclev1alpha1.Eviction]{}),
		source.Kind(c, &corev1.Pod{}, eviction.LeavingPods(r.ofPod)),
		source.Kind(c, &v1alpha1.Evacuation{}, kube.OnEvent(r.ofEvacuation)),
	}
}

// ofPod requests the Evictions of a pod that leaves. Most pods have none.
func (r *reconciler) ofPod(ctx context.Context, pod *corev1.Pod, q eviction.Requests) {
	enqueue(ctx, r.client, q, client.InNamespace(pod.Namespace), client.MatchingFields{kube.EvictionPodField: string(pod.UID)})
}

// enqueue requests the selected Evictions.
func enqueue(ctx context.Context, cache client.Reader, q eviction.Requests, options ...client.ListOption) {
	for _, e := range kube.Cached[*lifecyclev1alpha1.Eviction](ctx, cache, &lifecyclev1alpha1.EvictionList{}, options...) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e)})
	}
}
