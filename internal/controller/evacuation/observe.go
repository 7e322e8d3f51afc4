package evacuation

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch

// observe reads the evacuation and its pod; nil if there is no
// such evacuation any more.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (*core.Snapshot, error) {
	e := &v1alpha1.Evacuation{}
	if err := r.client.Get(ctx, key, e); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get the evacuation: %w", err)
	}
	seen := &core.Snapshot{Evacuation: e}
	seen.Now, seen.ClockSkewed = r.now()
	seen.Fresh = r.began.Left(r.clock.Now(), core.Lenience)
	var err error
	if seen.Pod, err = r.pod(ctx, e); err != nil {
		return nil, err
	}
	if seen.Pod == nil {
		return seen, nil
	}
	return seen, r.registered(ctx, seen)
}

// registered finds the evacuators that are registered for the pod, unless one of
// them has begun.
func (r *reconciler) registered(ctx context.Context, seen *core.Snapshot) error {
	if seen.Evacuation.Status.ActiveEvacuatorClass != "" {
		return nil
	}
	deployment, err := kube.DeploymentOf(ctx, r.client, seen.Pod)
	if err != nil {
		return fmt.Errorf("find the Deployment of the pod: %w", err)
	}
	seen.Evacuators, seen.Problems = surge.Evacuators(seen.Pod, deployment, r.surge)
	return nil
}

// pod reads the pod that bears the name; nil if there is none. The cache of pods
// may be behind the cache of evacuations, so that its "not found" is believed
// only of pods that it has shown before; all others are asked for.
func (r *reconciler) pod(ctx context.Context, e *v1alpha1.Evacuation) (*corev1.Pod, error) {
	key := types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.PodRef.Name}
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, key, pod, client.DisableReadYourWritesConsistency)
	if err == nil && pod.UID == e.Spec.PodRef.UID {
		r.known.note(client.ObjectKeyFromObject(e))
		return pod, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the pod: %w", err)
	}
	if r.known.has(client.ObjectKeyFromObject(e)) {
		return nil, nil
	}
	pod = &corev1.Pod{}
	if err := r.live.Get(ctx, key, pod); err != nil {
		if apierrors.IsNotFound(err) {
			r.known.note(client.ObjectKeyFromObject(e))
			return nil, nil
		}
		return nil, fmt.Errorf("ask for the pod: %w", err)
	}
	return pod, nil
}

// knownPods are the evacuations whose pods are known to be in the cache, or gone. The zero
// value has none. It is safe for concurrent use.
type knownPods struct {
	all   sync.Map
	count atomic.Int64
}

func (k *knownPods) note(evacuation types.NamespacedName) {
	if _, known := k.all.LoadOrStore(evacuation, true); !known {
		k.count.Add(1)
	}
}

func (k *knownPods) has(evacuation types.NamespacedName) bool {
	_, known := k.all.Load(evacuation)
	return known
}

func (k *knownPods) forget(evacuation types.NamespacedName) {
	if _, known := k.all.LoadAndDelete(evacuation); known {
		k.count.Add(-1)
	}
}
