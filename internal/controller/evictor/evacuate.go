package evictor

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=list;watch

// evacuated reads the evacuation of the pod.
func (r *reconciler) evacuated(ctx context.Context, seen *core.ResponseSnapshot) error {
	deployment, err := kube.DeploymentOf(ctx, r.client, seen.Pod)
	if err != nil {
		return fmt.Errorf("find the Deployment of pod %s: %w", seen.Pod.Name, err)
	}
	seen.Evacuators, _ = surge.Evacuators(seen.Pod, deployment, r.surge)
	seen.Unable = surge.Unable(seen.Pod, deployment, r.surge)
	e := &v1alpha1.Evacuation{}
	err = r.client.Get(ctx, types.NamespacedName{Namespace: seen.Pod.Namespace, Name: evacuation.Name(seen.Pod)}, e)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the evacuation of pod %s: %w", seen.Pod.Name, err)
	}
	if err == nil {
		seen.Evacuation = e
	}
	return nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=create;patch

// request creates the Evacuation of the pod, or joins the existing one.
func (r *reconciler) request(ctx context.Context, seen *core.ResponseSnapshot, d core.ResponseDecision) error {
	switch {
	case d.Evacuation == nil:
		return nil
	case seen.Evacuation == nil:
		// If another client was faster, its event follows.
		if err := r.client.Create(ctx, d.Evacuation); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create the evacuation of pod %s: %w", seen.Pod.Name, err)
		}
	default:
		if err := r.client.Patch(ctx, d.Evacuation, kube.Change(seen.Evacuation)); err != nil {
			return fmt.Errorf("request the evacuation of pod %s: %w", seen.Pod.Name, err)
		}
	}
	log.FromContext(ctx).Info("Requested an Evacuation", "reason", "EvictionRequest",
		"pod", seen.Pod.Name, "node", seen.Pod.Spec.NodeName, "responder", seen.Responder)
	return nil
}

// release withdraws the request for Evacuations that this Eviction, or an earlier one of its name, no
// longer backs. Without another instigator they end.
func (r *reconciler) release(ctx context.Context, key types.NamespacedName, e *lifecyclev1alpha1.Eviction, controls bool) error {
	list := &v1alpha1.EvacuationList{}
	// A new one comes as an event.
	if err := r.client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{kube.EvacuationTurnField: key.Name}, client.DisableReadYourWritesConsistency); err != nil {
		return fmt.Errorf("list the evacuations of an Eviction: %w", err)
	}
	for i := range list.Items {
		one := &list.Items[i]
		if core.IsBacked(one, e, controls) {
			continue
		}
		if err := kube.WithoutStale(ctx, r.withdraw(ctx, one)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) withdraw(ctx context.Context, e *v1alpha1.Evacuation) error {
	if _, err := kube.RemoveFinalizer(ctx, r.client, e, v1alpha1.LifecycleInstigator); err != nil {
		return fmt.Errorf("withdraw the request for the evacuation of pod %s: %w", e.Spec.PodRef.Name, err)
	}
	log.FromContext(ctx).Info("Withdrew the request for an Evacuation", "pod", e.Spec.PodRef.Name, "reason", "the responder is not active")
	r.emit(core.Released(e)...)
	return nil
}

// ofEvacuation enqueues the Evictions of the pod of an Evacuation, and its cause.
func (r *reconciler) ofEvacuation(ctx context.Context, q eviction.Requests, old, now *v1alpha1.Evacuation) {
	e := cmp.Or(now, old)
	causeOf(e, q)
	pod := &corev1.Pod{}
	pod.Namespace, pod.UID = e.Namespace, e.Spec.PodRef.UID
	r.ofPod(ctx, pod, q)
}
