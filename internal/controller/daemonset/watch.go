package daemonset

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/daemonset"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *evacuator) sources(c cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(c, &v1alpha1.Evacuation{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.Evacuation]{},
			predicate.NewTypedPredicateFuncs(core.Active)),
		source.Kind(c, &corev1.Pod{}, kube.OnEvent(r.podChanged)),
		source.Kind(c, &corev1.Node{}, onSuppression(r.enqueueNode)),
	}
}

func (r *evacuator) podChanged(ctx context.Context, q queue, old, now *corev1.Pod) {
	if now != nil && (old == nil || !maps.Equal(old.Labels, now.Labels) || old.DeletionTimestamp == nil && now.DeletionTimestamp != nil) {
		r.enqueue(ctx, now, q)
	}
}

func (r *evacuator) enqueueNode(ctx context.Context, node *corev1.Node, q queue) {
	for _, pod := range podsBy(ctx, r.client, kube.PodNodeField, node.Name) {
		r.enqueue(ctx, pod, q)
	}
}

// enqueue adds the Evacuation of a pod. One that the cache does not show yet has an event.
func (r *evacuator) enqueue(ctx context.Context, pod *corev1.Pod, q queue) {
	if podclass.Type(pod) != v1alpha1.PodTypeDaemonSet {
		return
	}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: evacuation.Name(pod)}
	err := r.client.Get(ctx, key, &v1alpha1.Evacuation{}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err == nil {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

func (r *gatekeeper) sources(c cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(c, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}, predicate.NewTypedPredicateFuncs(core.Held)),
		source.Kind(c, &corev1.Node{}, onSuppression(r.enqueueNode)),
	}
}

func (r *gatekeeper) enqueueNode(ctx context.Context, node *corev1.Node, q queue) {
	for _, pod := range podsBy(ctx, r.client, kube.PodHeldNodeField, node.Name) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
	}
}

// onSuppression calls a function for a node that keeps other pods away than before or is gone.
func onSuppression(changed func(context.Context, *corev1.Node, queue)) handler.TypedFuncs[*corev1.Node, reconcile.Request] {
	return kube.OnEvent(func(ctx context.Context, q queue, was, is *corev1.Node) {
		switch {
		case was == nil:
		case is == nil:
			changed(ctx, was, q)
		case was.Annotations[v1alpha1.DrainTargetsAnnotation] != is.Annotations[v1alpha1.DrainTargetsAnnotation] ||
			cordon.SuppressesAll(was) != cordon.SuppressesAll(is):
			changed(ctx, is, q)
		}
	})
}

// podsBy reads pods by an index of the cache.
func podsBy(ctx context.Context, c client.Reader, field, value string) []*corev1.Pod {
	return kube.Cached[*corev1.Pod](ctx, c, &corev1.PodList{}, client.MatchingFields{field: value})
}
