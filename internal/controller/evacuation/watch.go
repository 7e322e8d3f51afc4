package evacuation

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// evictPriority is that of evacuations whose budget has opened, cleanPriority
	// that of evacuations whose pod leaves or is gone; new ones are between them.
	evictPriority, cleanPriority = 10, -10
	// cleanDelay keeps the writes of cleaning up away from a burst of evictions.
	cleanDelay = 2 * time.Second
	// sweepDelay is for how long complete evacuations are gathered, sweepTimeout how long
	// it may take to delete those of a namespace.
	sweepDelay, sweepTimeout = time.Second, 30 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *reconciler) sources(c cache.Cache) []source.Source {
	return []source.Source{
		source.Func(func(_ context.Context, q queue) error {
			r.wake = func(keys ...types.NamespacedName) { wake(q, keys) }
			r.sweepLater = func(namespace string, after time.Duration) { sweepLater(q, namespace, after) }
			return nil
		}),
		source.Kind(c, &v1alpha1.Evacuation{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.Evacuation]{}),
		source.Kind(c, &corev1.Pod{}, r.podHandler()),
		source.Kind(c, &policyv1.PodDisruptionBudget{}, r.budgetHandler()),
	}
}

// held are the evacuations of which something may wait for our clock to be believed.
func (r *reconciler) held(ctx context.Context) []reconcile.Request {
	var list v1alpha1.EvacuationList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		// The cache itself never fails; it does when the manager stops.
		log.FromContext(ctx).Error(err, "The evacuations cannot be listed")
	}
	all := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		all[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return all
}

func wake(q queue, keys []types.NamespacedName) {
	priority := evictPriority
	for _, key := range keys {
		add(q, key, priorityqueue.AddOpts{Priority: &priority})
	}
}

// sweepLater queues a request without a name, which is that of the whole namespace.
func sweepLater(q queue, namespace string, after time.Duration) {
	priority := cleanPriority
	add(q, types.NamespacedName{Namespace: namespace}, priorityqueue.AddOpts{Priority: &priority, After: after})
}

// add also serves a manager whose queues have no priorities.
func add(q queue, key types.NamespacedName, options priorityqueue.AddOpts) {
	request := reconcile.Request{NamespacedName: key}
	if prioritised, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		prioritised.AddWithOpts(options, request)
		return
	}
	q.AddAfter(request, options.After)
}

// podHandler asks for the evacuation of a pod that leaves. A pod that comes or
// changes in other ways changes nothing.
func (r *reconciler) podHandler() handler.TypedFuncs[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			if leaving(e.ObjectNew) && !leaving(e.ObjectOld) {
				r.cleanLater(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) {
			r.cleanLater(ctx, e.Object, q)
		},
	}
}

func leaving(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || podclass.Terminal(pod)
}

func (r *reconciler) cleanLater(ctx context.Context, pod *corev1.Pod, q queue) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: core.Name(pod)}
	// Most pods have no evacuation. One that the cache does not show yet is
	// reconciled as soon as it does.
	err := r.client.Get(ctx, key, &v1alpha1.Evacuation{}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return
	}
	priority := cleanPriority
	add(q, key, priorityqueue.AddOpts{Priority: &priority, After: cleanDelay})
}

// budgetHandler lets evacuations go on that wait for a budget.
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
