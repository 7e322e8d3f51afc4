package evictionrequest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=lifecycle.k8s.io,resources=evictionrequests;evictions,verbs=list;watch

// observe reads what concerns the pods of a stem.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (core.Snapshot, error) {
	if err := r.written.CatchUp(ctx, r.client, key); err != nil {
		return core.Snapshot{}, err
	}
	seen := core.Snapshot{Now: r.now(), Acting: r.acting(), Ended: r.ended.since(key)}
	requests, evictions := &lifecyclev1alpha1.EvictionRequestList{}, &lifecyclev1alpha1.EvictionList{}
	of := []client.ListOption{
		client.InNamespace(key.Namespace), client.MatchingFields{StemField: key.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency,
	}
	if err := r.client.List(ctx, requests, of...); err != nil {
		return seen, fmt.Errorf("list the EvictionRequests of pod %s: %w", key.Name, err)
	}
	if err := r.client.List(ctx, evictions, of...); err != nil {
		return seen, fmt.Errorf("list the Evictions of pod %s: %w", key.Name, err)
	}
	seen.Requests = kube.Pointers(requests.Items)
	for _, e := range kube.Pointers(evictions.Items) {
		if target, named := core.EvictionTarget(e); named && core.Stem(target.Name) == key.Name {
			seen.Evictions = append(seen.Evictions, e)
		} else {
			seen.Strangers = append(seen.Strangers, e)
		}
	}
	for _, name := range names(&seen) {
		pod, err := get(ctx, r.client, types.NamespacedName{Namespace: key.Namespace, Name: name})
		if err != nil {
			return seen, err
		}
		if pod != nil {
			seen.Pods = append(seen.Pods, pod)
		}
	}
	return seen, nil
}

// names returns those of all targets, each once.
func names(seen *core.Snapshot) []string {
	var all []string
	for _, target := range targets(seen) {
		all = append(all, target.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func targets(seen *core.Snapshot) []core.Target {
	var all []core.Target
	for _, request := range seen.Requests {
		if target, named := core.TargetOf(request); named {
			all = append(all, target)
		}
	}
	for _, e := range seen.Evictions {
		if target, named := core.EvictionTarget(e); named {
			all = append(all, target)
		}
	}
	return all
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// lookAgain asks the API server for those pods that the cache does not show, and reports
// whether there were any. One that it has said to be gone never comes back.
func (r *Reconciler) lookAgain(ctx context.Context, namespace string, seen *core.Snapshot) (asked bool, err error) {
	for _, name := range names(seen) {
		at := slices.IndexFunc(seen.Pods, func(pod *corev1.Pod) bool { return pod.Name == name })
		missing := slices.ContainsFunc(targets(seen), func(target core.Target) bool {
			_, gone := seen.Ended[target.UID]
			return target.Name == name && !gone && (at < 0 || seen.Pods[at].UID != target.UID)
		})
		if !missing {
			continue
		}
		asked = true
		pod, err := get(ctx, r.live, types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil {
			return asked, err
		}
		seen.Pods = slices.DeleteFunc(seen.Pods, func(pod *corev1.Pod) bool { return pod.Name == name })
		if pod != nil {
			seen.Pods = append(seen.Pods, pod)
		}
	}
	return asked, nil
}

// get returns a pod; nil if there is none.
func get(ctx context.Context, reader client.Reader, key types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := reader.Get(ctx, key, pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get pod %s: %w", key.Name, err)
	}
	return pod, nil
}

// ended remembers since when targets have been seen to be gone, by a clock that nobody sets.
type ended struct {
	now func() time.Time
	mu  *sync.Mutex
	all map[types.NamespacedName]map[types.UID]time.Time
}

func newEnded(now func() time.Time) ended {
	return ended{now: now, mu: &sync.Mutex{}, all: map[types.NamespacedName]map[types.UID]time.Time{}}
}

// note has those remembered that are gone now, and all others of the key forgotten.
func (e ended) note(key types.NamespacedName, gone []types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.all[key]
	delete(e.all, key)
	if len(gone) == 0 {
		return
	}
	now := map[types.UID]time.Time{}
	for _, uid := range gone {
		since, known := before[uid]
		if !known {
			since = e.now()
		}
		now[uid] = since
	}
	e.all[key] = now
}

// see has a target remembered of which the cache has seen the end: nobody need be asked
// whether it is gone.
func (e ended) see(key types.NamespacedName, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all[key] == nil {
		e.all[key] = map[types.UID]time.Time{}
	}
	if _, known := e.all[key][uid]; !known {
		e.all[key][uid] = e.now()
	}
}

func (e ended) since(key types.NamespacedName) map[types.UID]time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	durations := map[types.UID]time.Duration{}
	for uid, since := range e.all[key] {
		durations[uid] = e.now().Sub(since)
	}
	return durations
}
