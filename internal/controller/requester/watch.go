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
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

type queue = workqueue.TypedRateLimitingInterface[item]

// sources are what there is to see. The last one begins when the first ones have been read.
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
		source.TypedKind(c, &v1alpha1.Evacuation{}, r.evacuationHandler()),
		source.TypedFunc[item](func(ctx context.Context, q queue) error {
			r.work(q)
			context.AfterFunc(ctx, func() { r.work(nil) })
			go r.read(ctx, c)
			return nil
		}),
	}
}

// evacuationHandler looks at the requests of Evacuations that somebody asks for, or has,
// whose wish they are.
func (r *Requester) evacuationHandler() handler.TypedFuncs[*v1alpha1.Evacuation, item] {
	return handler.TypedFuncs[*v1alpha1.Evacuation, item]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.Evacuation], q queue) {
			if evacuation.AskedByOthers(e.Object) {
				q.Add(itemOf(e.Object))
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.Evacuation], q queue) {
			if before, now := evacuation.AskedByOthers(e.ObjectOld), evacuation.AskedByOthers(e.ObjectNew); before != now ||
				now && evacuation.RespondersOver(e.ObjectOld) != evacuation.RespondersOver(e.ObjectNew) {
				q.Add(itemOf(e.ObjectNew))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.Evacuation], q queue) {
			if evacuation.AskedByOthers(e.Object) {
				q.Add(itemOf(e.Object))
			}
		},
	}
}

func itemOf(e *v1alpha1.Evacuation) item {
	return item{types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.PodRef.Name}, e.Spec.PodRef.UID}
}

// work says where there is work to do; nil is nowhere.
func (r *Requester) work(q queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = q
}

// lookAgain looks at the requests of all Evacuations that somebody asks for.
func (r *Requester) lookAgain() {
	r.mu.Lock()
	q := r.queue
	r.mu.Unlock()
	if q == nil {
		return
	}
	var list v1alpha1.EvacuationList
	// The cache itself never fails; it does when the manager stops.
	if r.client.List(context.Background(), &list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency) != nil {
		return
	}
	for i := range list.Items {
		if evacuation.AskedByOthers(&list.Items[i]) {
			q.Add(itemOf(&list.Items[i]))
		}
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
	if !named {
		return
	}
	pod := item{types.NamespacedName{Namespace: now.Namespace, Name: target.Name}, target.UID}
	// What is not ours may have the name of ours.
	if now.Name == core.Evacuations.NameFor(target.UID) {
		r.tellEvacuation(pod.evacuation())
	}
	if !core.Own(now) {
		return
	}
	q.Add(pod)
	if !core.Maintenances.Owns(now) {
		return
	}
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

// evictionMatters tells of what has come of the requests for a pod.
func (r *Requester) evictionMatters(ctx context.Context, e *lifecyclev1alpha1.Eviction) {
	target, named := core.EvictionTarget(e)
	if !named {
		return
	}
	if e.Labels[core.Evacuations.Name()] != "" {
		r.tellEvacuation(item{types.NamespacedName{Namespace: e.Namespace, Name: target.Name}, target.UID}.evacuation())
	}
	if e.Labels[core.Maintenances.Name()] == "" {
		return
	}
	if node := r.nodeOf(ctx, e.Namespace, target.Name); node != "" {
		r.tell(node, false)
	}
}

// nodeOf is the node of a pod; empty if it has none or is gone.
func (r *Requester) nodeOf(ctx context.Context, namespace, name string) string {
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pod, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return ""
	}
	return pod.Spec.NodeName
}
