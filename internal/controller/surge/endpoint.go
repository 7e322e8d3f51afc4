package surge

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	core "ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch

// endpoints remembers since when Services lead to pods. A manager that has just started
// knows it of nobody for longer than it runs, and waits a moment more.
type endpoints struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of map[types.UID][]endpoint
}

// endpoint records that a slice has a pod.
type endpoint struct {
	slice *slice
	since time.Time
}

// slice holds the facts that all pods of an EndpointSlice share.
type slice struct {
	key   types.NamespacedName
	route core.Route
}

func newEndpoints(c clock.PassiveClock) *endpoints {
	return &endpoints{clock: c, of: map[types.UID][]endpoint{}}
}

// change takes an EndpointSlice to account that was one and is another, each nil if there
// is none, and returns the pods that it has no more or now.
func (e *endpoints) change(old, now *discoveryv1.EndpointSlice) []client.ObjectKey {
	was, is := podsOf(old), podsOf(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	var changed []client.ObjectKey
	for uid, key := range was {
		if _, stays := is[uid]; !stays {
			e.drop(uid, client.ObjectKeyFromObject(old))
			changed = append(changed, key)
		}
	}
	if now == nil {
		return changed
	}
	shared := &slice{
		key:   client.ObjectKeyFromObject(now),
		route: core.Route{Service: now.Labels[discoveryv1.LabelServiceName], AddressType: now.AddressType},
	}
	at := e.clock.Now()
	for uid, key := range is {
		if !slices.ContainsFunc(e.of[uid], func(one endpoint) bool { return one.slice.key == shared.key }) {
			e.of[uid] = append(e.of[uid], endpoint{shared, at})
			changed = append(changed, key)
		}
	}
	return changed
}

func (e *endpoints) drop(uid types.UID, key types.NamespacedName) {
	left := slices.DeleteFunc(e.of[uid], func(one endpoint) bool { return one.slice.key == key })
	if e.of[uid] = left; len(left) == 0 {
		delete(e.of, uid)
	}
}

// podsOf returns the pods that an EndpointSlice sends requests to.
func podsOf(s *discoveryv1.EndpointSlice) map[types.UID]client.ObjectKey {
	pods := map[types.UID]client.ObjectKey{}
	if s == nil {
		return pods
	}
	for i := range s.Endpoints {
		if pod := s.Endpoints[i].TargetRef; pod != nil {
			pods[pod.UID] = client.ObjectKey{Namespace: s.Namespace, Name: pod.Name}
		}
	}
	return pods
}

// leadingTo returns what leads to some pods.
func (e *endpoints) leadingTo(pods []*corev1.Pod) map[types.UID][]core.Endpoint {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, all := e.clock.Now(), map[types.UID][]core.Endpoint{}
	for _, pod := range pods {
		for _, one := range e.of[pod.UID] {
			all[pod.UID] = append(all[pod.UID], core.Endpoint{Route: one.slice.route, For: now.Sub(one.since)})
		}
	}
	return all
}

// ofSlice enqueues the Deployments whose pods an EndpointSlice leads to now, or no longer.
func (r *reconciler) ofSlice() handler.TypedFuncs[*discoveryv1.EndpointSlice, item] {
	return kube.OnEvent(func(ctx context.Context, q kube.Queue[item], old, now *discoveryv1.EndpointSlice) {
		changed := r.endpoints.change(old, now)
		if r.busy.none() {
			return
		}
		for _, key := range changed {
			pod := &corev1.Pod{}
			if r.client.Get(ctx, key, pod, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency) != nil {
				continue // A pod that comes is looked at for itself.
			}
			if it, found := r.ofPod(ctx, pod); found {
				q.AddAfter(it, r.busy.pause(it))
			}
		}
	})
}
