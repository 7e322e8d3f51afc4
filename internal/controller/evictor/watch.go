package evictor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

func (r *reconciler) sources(c cache.Cache, onActive func(context.Context, func(context.Context))) []source.Source {
	return []source.Source{
		source.Func(func(ctx context.Context, q eviction.Requests) error {
			onActive(ctx, func(ctx context.Context) { r.all(ctx, q) })
			return nil
		}),
		source.Kind(c, &lifecyclev1alpha1.Eviction{}, &handler.TypedEnqueueRequestForObject[*lifecyclev1alpha1.Eviction]{}),
		source.Kind(c, &corev1.Pod{}, eviction.LeavingPods(r.ofPod)),
		source.Kind(c, &v1alpha1.Evacuation{}, kube.OnEvent(r.ofEvacuation)),
	}
}

// ofPod requests the Evictions of a pod that leaves. Most pods have none.
func (r *reconciler) ofPod(ctx context.Context, pod *corev1.Pod, q eviction.Requests) {
	list := &lifecyclev1alpha1.EvictionList{}
	err := r.client.List(ctx, list, client.InNamespace(pod.Namespace), client.MatchingFields{kube.EvictionPodField: string(pod.UID)},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		// The cache itself never fails; it does when the manager stops.
		log.FromContext(ctx).Error(err, "The Evictions of a pod cannot be listed")
	}
	for i := range list.Items {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
}

// all has all Evictions reconciled.
func (r *reconciler) all(ctx context.Context, q eviction.Requests) {
	list := &lifecyclev1alpha1.EvictionList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		log.FromContext(ctx).Error(err, "The Evictions cannot be listed")
	}
	for i := range list.Items {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
}
