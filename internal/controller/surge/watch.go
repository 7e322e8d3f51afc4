package surge

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// leads says which item an object is about, if any.
type leads[T client.Object] func(ctx context.Context, object T) (item, bool)

func (r *reconciler) sources(c cache.Cache) []source.TypedSource[item] {
	sources := []source.TypedSource[item]{
		source.TypedFunc[item](func(_ context.Context, q workqueue.TypedRateLimitingInterface[item]) error {
			r.wake = q.Add
			return nil
		}),
		source.TypedKind(c, &v1alpha1.Evacuation{}, handlerOf(r.busy, r.ofEvacuation)),
		source.TypedKind(c, &appsv1.Deployment{}, handlerOf(r.busy, r.ofDeployment)),
		source.TypedKind(c, &appsv1.ReplicaSet{}, handlerOf(r.busy, r.ofReplicaSet)),
		source.TypedKind(c, &corev1.Pod{}, handlerOf(r.busy, r.ofPod)),
	}
	if r.mode == core.Off { // Nobody is waited for then.
		return sources
	}
	return append(sources, source.TypedKind(c, &discoveryv1.EndpointSlice{}, r.ofSlice()))
}

// handlerOf enqueues the items of an object before and after a change. Changes of an item during its
// pause are handled together.
func handlerOf[T client.Object](b *busy, follow leads[T]) handler.TypedFuncs[T, item] {
	return kube.OnEvent(func(ctx context.Context, q kube.Queue[item], old, now T) {
		var none T
		for _, object := range []T{old, now} {
			if any(object) == any(none) {
				continue
			}
			if it, found := follow(ctx, object); found {
				q.AddAfter(it, b.pause(it))
			}
		}
	})
}

// ofEvacuation: those whose turn is or was ours, and those of detached pods.
func (r *reconciler) ofEvacuation(ctx context.Context, e *v1alpha1.Evacuation) (item, bool) {
	ours := e.Status.ActiveEvacuatorClass == v1alpha1.DeploymentEvacuatorClass
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, podOf(e), pod, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err == nil && (ours || core.Detached(pod)) {
		if it, err := deploymentOf(ctx, r.client, pod); err == nil && it.uid != "" {
			return it, true
		}
	}
	return item{NamespacedName: client.ObjectKeyFromObject(e)}, ours
}

// held returns the Deployments of which something may wait for our clock to be trusted.
func (r *reconciler) held(ctx context.Context) []item {
	var all []item
	for _, e := range kube.Cached[*v1alpha1.Evacuation](ctx, r.client, &v1alpha1.EvacuationList{}) {
		if it, found := r.ofEvacuation(ctx, e); found {
			all = append(all, it)
		}
	}
	return all
}

func (r *reconciler) ofDeployment(_ context.Context, d *appsv1.Deployment) (item, bool) {
	return r.busy.with(d.UID)
}

func (r *reconciler) ofReplicaSet(_ context.Context, set *appsv1.ReplicaSet) (item, bool) {
	if it, busy := r.busy.with(set.UID); busy {
		return it, true
	}
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil {
		return item{}, false
	}
	return r.busy.with(owner.UID)
}

func (r *reconciler) ofPod(_ context.Context, pod *corev1.Pod) (item, bool) {
	if named, ok := core.DeploymentOf(pod); ok {
		return itemOf(pod.Namespace, named), true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil { // All that is left of a lost pod is its Evacuation.
		return item{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: evacuation.Name(pod)}}, core.Lost(pod)
	}
	return r.busy.with(owner.UID)
}
