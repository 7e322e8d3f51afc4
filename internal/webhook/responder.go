package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

// responders finds the active responder of a pod while the API server serves EvictionRequests. Nil finds
// none.
type responders struct {
	cached client.Reader
	// asked returns whether the API is served, and whether that is known.
	asked func() (served, known bool)

	mu sync.RWMutex
	// read is true while the cache is synced; since is the time of its last change.
	read  bool
	since time.Time
}

// addResponders watches Evictions in every replica while they are served; nil without served.
func addResponders(cached client.Reader, objects cache.Cache, served *kube.Served) *responders {
	if served == nil {
		return nil
	}
	r := &responders{cached: cached, asked: served.Asked}
	served.IndexEverywhere(&lifecyclev1alpha1.Eviction{}, kube.EvictionPodField, kube.EvictionPod)
	served.PartEverywhere(func(ctx context.Context) error {
		if _, err := objects.GetInformer(ctx, &lifecyclev1alpha1.Eviction{}, cache.BlockUntilSynced(true)); err != nil {
			return fmt.Errorf("watch Evictions for the webhooks: %w", err)
		}
		r.reads(ctx.Err() == nil)
		// A read after the end would start another watch.
		defer r.reads(false)
		<-ctx.Done()
		return nil
	})
	return r
}

func (r *responders) reads(read bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read, r.since = read, time.Now()
}

// of returns the active responder of a pod. Its right to list Evictions is that of
// internal/controller/evictor.
func (r *responders) of(ctx context.Context, pod *corev1.Pod, now time.Time) evacuation.Responding {
	if r == nil || len(pod.Spec.EvictionResponders) == 0 {
		return evacuation.Responding{}
	}
	served, known := r.asked()
	switch {
	case !known:
		return evacuation.Responding{Unknown: "the API server has not reported yet whether it serves EvictionRequests"}
	case !served:
		return evacuation.Responding{}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.read {
		return evacuation.Responding{Unknown: "the cache of Evictions of lifecycle.k8s.io is not synced yet"}
	}
	list := &lifecyclev1alpha1.EvictionList{}
	err := r.cached.List(ctx, list, client.InNamespace(pod.Namespace), client.MatchingFields{kube.EvictionPodField: string(pod.UID)},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return evacuation.Responding{Unknown: "list its Evictions of lifecycle.k8s.io: " + err.Error()}
	}
	if time.Since(r.since) < evictionrequest.HeartbeatEvery {
		// Our own responders may have been silent because the manager was down.
		now = time.Time{}
	}
	holder := evictionrequest.HolderOf(pod, kube.Pointers(list.Items), now)
	return evacuation.Responding{Eviction: holder.Eviction, Responder: holder.Responder, Says: holder.Message}
}
