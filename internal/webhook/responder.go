package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

// responders knows who moves pods for EvictionRequests, while the API server serves those.
// Where it does not there is no watch of them, and nobody is held up. Nil knows of none.
type responders struct {
	cached client.Reader
	// asked says whether the API is served, and whether that is known.
	asked func() (served, known bool)

	mu sync.RWMutex
	// read is true while the cache has all Evictions, since when it had them.
	read  bool
	since time.Time
}

// addResponders has every replica watch Evictions while they are served; nil if they are not to
// be asked for at all.
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
		// The watch ends behind us: who read then would begin another one.
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

// The right to list Evictions is given with those of internal/controller/evictor, with the
// chart's evictionRequests.enabled only.

// of returns who moves a pod. What cannot be read is not nobody.
func (r *responders) of(ctx context.Context, pod *corev1.Pod, now time.Time) evacuation.Responding {
	// Most pods name none.
	if r == nil || len(pod.Spec.EvictionResponders) == 0 {
		return evacuation.Responding{}
	}
	served, known := r.asked()
	switch {
	case !known:
		return evacuation.Responding{Unknown: "the API server has not said yet whether it serves EvictionRequests"}
	case !served:
		return evacuation.Responding{}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.read {
		return evacuation.Responding{Unknown: "the Evictions of lifecycle.k8s.io have not been read yet"}
	}
	list := &lifecyclev1alpha1.EvictionList{}
	err := r.cached.List(ctx, list, client.InNamespace(pod.Namespace), client.MatchingFields{kube.EvictionPodField: string(pod.UID)},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return evacuation.Responding{Unknown: "list its Evictions of lifecycle.k8s.io: " + err.Error()}
	}
	if time.Since(r.since) < evictionrequest.HeartbeatEvery {
		// Responders of ours may have been silent because they were away with us.
		now = time.Time{}
	}
	holder := evictionrequest.HolderOf(pod, kube.Pointers(list.Items), now)
	return evacuation.Responding{Eviction: holder.Eviction, Responder: holder.Responder, Says: holder.Says}
}

// asResponder is the responder that an eviction says to be from; empty if it says nothing. Who
// says so without being it is not held up by that responder's turn, and by all else.
func asResponder(eviction *policyv1.Eviction) string {
	return eviction.Annotations[v1alpha1.EvictionRequestAnnotation]
}
