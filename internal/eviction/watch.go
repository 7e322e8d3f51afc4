package eviction

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// WakePriority is the priority of pods that are woken. New ones have 0 and come after them.
const WakePriority = 10

// Requests is the work queue of a controller that evicts pods.
type Requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Wake queues the keys with WakePriority.
func Wake(q Requests, keys []types.NamespacedName) {
	for _, key := range keys {
		Add(q, key, priorityqueue.AddOpts{Priority: new(WakePriority)})
	}
}

// Add queues a key. A queue without priorities respects only options.After.
func Add(q Requests, key types.NamespacedName, options priorityqueue.AddOpts) {
	request := reconcile.Request{NamespacedName: key}
	if prioritised, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		prioritised.AddWithOpts(options, request)
		return
	}
	q.AddAfter(request, options.After)
}

// LeavingPods calls leaves for a pod whose deletion begins, that has ended, or that is gone.
func LeavingPods(leaves func(context.Context, *corev1.Pod, Requests)) handler.TypedFuncs[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q Requests) {
			old, now := e.ObjectOld, e.ObjectNew
			// An interrupted watch reports another pod of the name as a change.
			another := now.UID != old.UID
			if another {
				leaves(ctx, old, q)
			}
			if deleted(now) && (another || !deleted(old)) || podclass.Terminal(now) && (another || !podclass.Terminal(old)) {
				leaves(ctx, now, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q Requests) { leaves(ctx, e.Object, q) },
	}
}

func deleted(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// Budgets returns a handler that reports all changes of disruption budgets to the dispatcher.
func (d *Dispatcher) Budgets() handler.TypedFuncs[*policyv1.PodDisruptionBudget, reconcile.Request] {
	return handler.TypedFuncs[*policyv1.PodDisruptionBudget, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*policyv1.PodDisruptionBudget], _ Requests) {
			d.BudgetChanged(nil, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*policyv1.PodDisruptionBudget], _ Requests) {
			d.BudgetChanged(e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*policyv1.PodDisruptionBudget], _ Requests) {
			d.BudgetChanged(e.Object, nil)
		},
	}
}
