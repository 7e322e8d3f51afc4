package requester

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

type queue = workqueue.TypedRateLimitingInterface[item]

// sources returns what there is to see. The last one begins when the first ones have been read.
func (r *Requester) sources(c cache.Cache) []source.TypedSource[item] {
	return []source.TypedSource[item]{
		source.TypedKind(c, &lifecyclev1alpha1.EvictionRequest{}, kube.OnEvent(r.requestMatters)),
		source.TypedKind(c, &lifecyclev1alpha1.Eviction{}, kube.OnEvent(r.evictionMatters)),
		source.TypedKind(c, &corev1.Pod{}, kube.OnEvent(podMatters)),
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

// podMatters enqueues a pod that comes or goes: its request may have been seen before it.
func podMatters(_ context.Context, q queue, old, now *corev1.Pod) {
	pod := cmp.Or(now, old)
	if (old == nil || now == nil) && core.Requestable(pod) {
		q.Add(item{client.ObjectKeyFromObject(pod), pod.UID})
	}
}

// requestMatters enqueues a request of ours, and wakes what it concerns.
func (r *Requester) requestMatters(ctx context.Context, q queue, old, now *lifecyclev1alpha1.EvictionRequest) {
	if now == nil {
		old, now = nil, old
	}
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

// evictionMatters reports the progress of the requests for a pod.
func (r *Requester) evictionMatters(ctx context.Context, _ queue, _, e *lifecyclev1alpha1.Eviction) {
	if e == nil {
		return
	}
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
