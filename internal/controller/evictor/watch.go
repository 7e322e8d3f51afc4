package evictor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// evictPriority is that of Evictions whose budget has opened.
const evictPriority = 10

// podField finds the Evictions of a pod, by its UID.
const podField = "ebbtide.dev/target-uid"

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podUID extracts podField.
func podUID(object client.Object) []string {
	e, ok := object.(*lifecyclev1alpha1.Eviction)
	if !ok || e.Spec.Target.Pod == nil {
		return nil
	}
	return []string{string(e.Spec.Target.Pod.UID)}
}

func (r *reconciler) sources(c cache.Cache, onActive func(context.Context, func(context.Context))) []source.Source {
	return []source.Source{
		source.Func(func(ctx context.Context, q queue) error {
			r.wake = func(keys ...types.NamespacedName) { first(q, keys) }
			onActive(ctx, func(ctx context.Context) { r.all(ctx, q) })
			return nil
		}),
		source.Kind(c, &lifecyclev1alpha1.Eviction{}, &handler.TypedEnqueueRequestForObject[*lifecyclev1alpha1.Eviction]{}),
		source.Kind(c, &corev1.Pod{}, r.podHandler()),
		source.Kind(c, &v1alpha1.Evacuation{}, r.evacuationHandler()),
		source.Kind(c, &policyv1.PodDisruptionBudget{}, r.budgetHandler()),
	}
}

func first(q queue, keys []types.NamespacedName) {
	priority := evictPriority
	for _, key := range keys {
		request := reconcile.Request{NamespacedName: key}
		if prioritised, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			prioritised.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
			continue
		}
		q.Add(request)
	}
}

// podHandler asks for the Evictions of a pod that leaves. Most pods have none.
func (r *reconciler) podHandler() handler.TypedFuncs[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			if leaving(e.ObjectNew) && !leaving(e.ObjectOld) || podclass.Terminal(e.ObjectNew) && !podclass.Terminal(e.ObjectOld) {
				r.ofPod(ctx, e.ObjectNew, q)
			}
			if e.ObjectNew.UID != e.ObjectOld.UID {
				r.ofPod(ctx, e.ObjectOld, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) { r.ofPod(ctx, e.Object, q) },
	}
}

func leaving(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

func (r *reconciler) ofPod(ctx context.Context, pod *corev1.Pod, q queue) {
	list := &lifecyclev1alpha1.EvictionList{}
	err := r.client.List(ctx, list, client.InNamespace(pod.Namespace), client.MatchingFields{podField: string(pod.UID)},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		// The cache itself never fails; it does when the manager stops.
		log.FromContext(ctx).Error(err, "The Evictions of a pod cannot be listed")
	}
	for i := range list.Items {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
}

// budgetHandler lets evictions go on that wait for a budget.
func (r *reconciler) budgetHandler() handler.TypedFuncs[*policyv1.PodDisruptionBudget, reconcile.Request] {
	return handler.TypedFuncs[*policyv1.PodDisruptionBudget, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*policyv1.PodDisruptionBudget], _ queue) {
			r.dispatcher.BudgetChanged(nil, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*policyv1.PodDisruptionBudget], _ queue) {
			r.dispatcher.BudgetChanged(e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*policyv1.PodDisruptionBudget], _ queue) {
			r.dispatcher.BudgetChanged(e.Object, nil)
		},
	}
}

// all has all Evictions reconciled.
func (r *reconciler) all(ctx context.Context, q queue) {
	list := &lifecyclev1alpha1.EvictionList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		log.FromContext(ctx).Error(err, "The Evictions cannot be listed")
	}
	for i := range list.Items {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
}
