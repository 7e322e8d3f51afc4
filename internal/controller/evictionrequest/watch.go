package evictionrequest

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

// StemField finds the EvictionRequests and the Evictions of pods, by their stem, and the
// Evictions that are named as theirs.
const StemField = "ebbtide.dev/target-stem"

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Stems extracts StemField. An Eviction is also found by the pod that its name is for, as
// anybody may have given it that name.
func Stems(object client.Object) []string {
	var all []string
	switch object := object.(type) {
	case *lifecyclev1alpha1.EvictionRequest:
		if target, named := core.TargetOf(object); named {
			all = append(all, core.Stem(target.Name))
		}
	case *lifecyclev1alpha1.Eviction:
		if target, named := core.EvictionTarget(object); named {
			all = append(all, core.Stem(target.Name))
		}
		if stem := core.NameStem(object.Name); stem != "" && !slices.Contains(all, stem) {
			all = append(all, stem)
		}
	}
	return all
}

func (r *Reconciler) sources(c cache.Cache, role *Role) []source.Source {
	return []source.Source{
		source.Func(func(ctx context.Context, q queue) error {
			r.wakeAll = func(ctx context.Context) { r.all(ctx, q) }
			role.onActive(ctx, r.wakeAll)
			return nil
		}),
		source.Kind(c, &lifecyclev1alpha1.EvictionRequest{}, handler.TypedEnqueueRequestsFromMapFunc(ofObject[*lifecyclev1alpha1.EvictionRequest])),
		source.Kind(c, &lifecyclev1alpha1.Eviction{}, handler.TypedEnqueueRequestsFromMapFunc(ofObject[*lifecyclev1alpha1.Eviction])),
		source.Kind(c, &corev1.Pod{}, r.podHandler()),
	}
}

func ofObject[T client.Object](_ context.Context, object T) []reconcile.Request {
	var all []reconcile.Request
	for _, stem := range Stems(object) {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: stem}})
	}
	return all
}

// podHandler requests what concerns a pod that is gone or has ended. Most pods concern nobody.
func (r *Reconciler) podHandler() handler.TypedFuncs[*corev1.Pod, reconcile.Request] {
	return kube.OnEvent(func(ctx context.Context, q queue, old, now *corev1.Pod) {
		switch {
		case old == nil:
		case now == nil || now.UID != old.UID:
			r.concerned(ctx, old, true, q)
		case podclass.Terminal(now) && !podclass.Terminal(old):
			r.concerned(ctx, now, false, q)
		}
	})
}

func (r *Reconciler) concerned(ctx context.Context, pod *corev1.Pod, gone bool, q queue) {
	list := &lifecyclev1alpha1.EvictionList{}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: core.Stem(pod.Name)}
	err := r.client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{StemField: key.Name},
		client.Limit(1), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		// The cache itself never fails; it does when the manager stops.
		log.FromContext(ctx).Error(err, "The Evictions of a pod cannot be listed")
	}
	if gone && len(list.Items) > 0 {
		r.ended.see(key, pod.UID)
	}
	if err != nil || len(list.Items) > 0 {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// all enqueues everything.
func (r *Reconciler) all(ctx context.Context, q queue) {
	for _, list := range []client.ObjectList{&lifecyclev1alpha1.EvictionRequestList{}, &lifecyclev1alpha1.EvictionList{}} {
		for _, object := range kube.Cached[client.Object](ctx, r.client, list) {
			for _, request := range ofObject(ctx, object) {
				q.Add(request)
			}
		}
	}
}
