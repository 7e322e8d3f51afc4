package evacuation

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/eviction"
)

const (
	// cleanPriority applies to evacuations whose pod leaves or is gone, below that of new ones.
	cleanPriority = -10
	// cleanDelay keeps the writes of cleaning up away from a burst of evictions. It is longer
	// by cleanShare for each evacuation under way, up to longestClean: where many pods leave,
	// the API server has enough to do with their replacements.
	cleanDelay, cleanShare, longestClean = 2 * time.Second, 25 * time.Millisecond, 20 * time.Second
	// sweepDelay collects complete evacuations, sweepTimeout bounds the deletion of those of a
	// namespace.
	sweepDelay, sweepTimeout = time.Second, 30 * time.Second
)

func (r *reconciler) sources(c cache.Cache) []source.Source {
	return []source.Source{
		source.Func(func(_ context.Context, q eviction.Requests) error {
			r.wake = func(keys ...types.NamespacedName) { eviction.Wake(q, keys) }
			r.sweepLater = func(namespace string, after time.Duration) { sweepLater(q, namespace, after) }
			return nil
		}),
		source.Kind(c, &v1alpha1.Evacuation{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.Evacuation]{}),
		source.Kind(c, &corev1.Pod{}, eviction.LeavingPods(r.cleanLater)),
		source.Kind(c, &policyv1.PodDisruptionBudget{}, r.evictions.Budgets()),
	}
}

// sweepLater queues a request without a name, which is that of the whole namespace.
func sweepLater(q eviction.Requests, namespace string, after time.Duration) {
	eviction.Add(q, types.NamespacedName{Namespace: namespace}, priorityqueue.AddOpts{Priority: new(cleanPriority), After: after})
}

// cleanLater requests the evacuation of a pod that leaves.
func (r *reconciler) cleanLater(ctx context.Context, pod *corev1.Pod, q eviction.Requests) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: core.Name(pod)}
	// Most pods have no evacuation. One that the cache does not show yet is
	// reconciled as soon as it does.
	err := r.client.Get(ctx, key, &v1alpha1.Evacuation{}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return
	}
	eviction.Add(q, key, priorityqueue.AddOpts{Priority: new(cleanPriority), After: cleanAfter(r.known.count.Load())})
}

// cleanAfter returns how long after its pod has left an evacuation is cleaned up, of so many that
// are under way.
func cleanAfter(underWay int64) time.Duration {
	return min(cleanDelay+time.Duration(underWay)*cleanShare, longestClean)
}
