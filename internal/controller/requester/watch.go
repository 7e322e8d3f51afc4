package requester

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

type queue = workqueue.TypedRateLimitingInterface[item]

// sources returns what there is to see. The last one begins when the first ones have been read.
func (r *Requester) sources(c cache.Cache) []source.TypedSource[item] {
	return []source.TypedSource[item]{
		source.TypedKind(c, &lifecyclev1alpha1.EvictionRequest{}, handler.TypedFuncs[*lifecyclev1alpha1.EvictionRequest, item]{
			CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*lifecyclev1alpha1.EvictionRequest], q queue) {
				r.requestMatters(ctx, nil, e.Object, q)
			},
			UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*lifecyclev1alpha1.EvictionRequest], q queue) {
				r.requestMatters(ctx, e.ObjectOld, e.ObjectNew, q)
			},
			DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*lifecyclev1alpha1.EvictionRequest], q queue) {
				r.requestMatters(ctx, nil, e.Object, q)
			},
		}),
		source.TypedKind(c, &lifecyclev1alpha1.Eviction{}, handler.TypedFuncs[*lifecyclev1alpha1.Eviction, item]{
			CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*lifecyclev1alpha1.Eviction], _ queue) {
				r.evictionMatters(ctx, e.Object)
			},
			UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*lifecyclev1alpha1.Eviction], _ queue) {
				r.evictionMatters(ctx, e.ObjectNew)
			},
		}),
		source.TypedKind(c, &corev1.Pod{}, handler.TypedFuncs[*corev1.Pod, item]{
			// Its request may have been seen before it.
			CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) {
				if core.Requestable(e.Object) {
					q.Add(item{client.ObjectKeyFromObject(e.Object), e.Object.UID})
				}
			},
			DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) {
				if core.Requestable(e.Object) {
					q.Add(item{client.ObjectKeyFromObject(e.Object), e.Object.UID})
				}
			},
		}),
		source.TypedFunc[item](func(ctx context.Context, _ queue) error {
			go r.read(ctx, c)
			return nil
		}),
	}
}

// read waits until everything that there is has been read.
func (r *Requester) read(ctx context.Context, c cache.Cache) {
	for _, kind := range []client.Object{&lifecyclev1alpha1.EvictionRequest{}, &lifecyclev1alpha1.Eviction{}} {
		if _, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(true)); err != nil || ctx.Err() != nil {
			return
		}
	}
	r.options.OnActive(ctx, func(context.Context) { r.tellAll() })
	r.watch(true)
}

// requestMatters has a request of ours looked at, and what it concerns.
func (r *Requester) requestMatters(ctx context.Context, old, now *lifecyclev1alpha1.EvictionRequest, q queue) {
	if old != nil && core.Own(old) && core.AwaitsAnswer(old) && !core.AwaitsAnswer(now) {
		r.answer()
	}
	target, named := core.TargetOf(now)
	if !named || !core.Own(now) {
		return
	}
	q.Add(item{types.NamespacedName{Namespace: now.Namespace, Name: target.Name}, target.UID})
	urgent := old == nil || old.Generation != now.Generation || core.AwaitsAnswer(old) != core.AwaitsAnswer(now)
	node := r.nodeOf(ctx, now.Namespace, target.Name)
	if node != "" {
		r.tell(node, urgent)
	}
	// Somebody may have changed what leads us back to it.
	if named := now.Annotations[v1alpha1.NodeAnnotation]; named != "" && named != node {
		r.tell(named, urgent)
	}
}

// evictionMatters reports what has come of the requests for a pod.
func (r *Requester) evictionMatters(ctx context.Context, e *lifecyclev1alpha1.Eviction) {
	target, named := core.EvictionTarget(e)
	if !named || e.Labels[v1alpha1.NodeMaintenanceRequester] == "" {
		return
	}
	if node := r.nodeOf(ctx, e.Namespace, target.Name); node != "" {
		r.tell(node, false)
	}
}

// nodeOf returns the node of a pod; empty if it has none or is gone.
func (r *Requester) nodeOf(ctx context.Context, namespace, name string) string {
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pod, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return ""
	}
	return pod.Spec.NodeName
}
