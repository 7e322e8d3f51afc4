package evictor

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// +kubebuilder:rbac:groups=lifecycle.k8s.io,resources=evictions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// eviction reads an Eviction; nil if there is none.
func (r *reconciler) eviction(ctx context.Context, key types.NamespacedName) (*lifecyclev1alpha1.Eviction, error) {
	e := &lifecyclev1alpha1.Eviction{}
	err := r.client.Get(ctx, key, e, client.DisableReadYourWritesConsistency)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the Eviction: %w", err)
	}
	return e, nil
}

// observe reads the pod of an Eviction, and its evacuation.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName, responder string, e *lifecyclev1alpha1.Eviction) (*core.ResponseSnapshot, error) {
	target, _ := core.EvictionTarget(e)
	seen := &core.ResponseSnapshot{Now: r.now(), Eviction: e, Responder: responder}
	seen.Clock, seen.ClockSkewed = r.clock()
	seen.Fresh = r.began.Left(time.Now(), evacuation.Lenience)
	// The cache may be behind, and nobody learns that a pod is gone which is not.
	for _, reader := range []client.Reader{r.client, r.live} {
		var err error
		if seen.Pod, err = podOf(ctx, reader, key.Namespace, target); err != nil {
			return nil, err
		}
		if seen.Pod != nil {
			return seen, r.evacuated(ctx, seen)
		}
	}
	return seen, nil
}

// podOf returns the target; nil if it is gone.
func podOf(ctx context.Context, reader client.Reader, namespace string, target core.Target) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: target.Name}, pod, client.DisableReadYourWritesConsistency)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get pod %s: %w", target.Name, err)
	case pod.UID != target.UID:
		return nil, nil
	}
	return pod, nil
}
