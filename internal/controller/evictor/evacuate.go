package evictor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=list;watch

// evacuated reads what is known of the evacuation of the pod.
func (r *reconciler) evacuated(ctx context.Context, seen *core.TurnSnapshot) error {
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

// ask asks for the Evacuation of the pod, or joins the one that there is.
func (r *reconciler) ask(ctx context.Context, seen *core.TurnSnapshot, d core.TurnDecision) error {
	switch {
	case d.Ask == nil:
		return nil
	case seen.Evacuation == nil:
		// Somebody else may have been faster, which is an event.
		if err := r.client.Create(ctx, d.Ask); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create the evacuation of pod %s: %w", seen.Pod.Name, err)
		}
	default:
		if err := r.client.Patch(ctx, d.Ask, kube.Change(seen.Evacuation)); err != nil {
			return fmt.Errorf("ask for the evacuation of pod %s: %w", seen.Pod.Name, err)
		}
	}
	log.FromContext(ctx).Info("Asked for the evacuation of a pod that an EvictionRequest is for",
		"pod", seen.Pod.Name, "node", seen.Pod.Spec.NodeName, "responder", seen.Responder)
	return nil
}

// release asks no more for Evacuations that were asked for in turns of this Eviction that are
// over, or in those of another that had its name. What nobody else asks for then puts the pod
// back and goes.
func (r *reconciler) release(ctx context.Context, key types.NamespacedName, e *lifecyclev1alpha1.Eviction, controls bool) error {
	list := &v1alpha1.EvacuationList{}
	// One that has just been asked for comes as an event. Nobody waits for those of others.
	if err := r.client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{kube.EvacuationTurnField: key.Name}, client.DisableReadYourWritesConsistency); err != nil {
		return fmt.Errorf("list the evacuations of an Eviction: %w", err)
	}
	for i := range list.Items {
		one := &list.Items[i]
		if core.Backed(one, e, controls) {
			continue
		}
		if err := kube.WithoutStale(ctx, r.letGo(ctx, one)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) letGo(ctx context.Context, e *v1alpha1.Evacuation) error {
	if _, err := kube.RemoveFinalizer(ctx, r.client, e, v1alpha1.LifecycleInstigator); err != nil {
		return fmt.Errorf("ask no more for the evacuation of pod %s: %w", e.Spec.PodRef.Name, err)
	}
	log.FromContext(ctx).Info("Asks no more for the evacuation of a pod", "pod", e.Spec.PodRef.Name)
	r.emit(core.LetGo(e)...)
	return nil
}

// evacuationHandler asks for the Evictions of the pod of an Evacuation, and for the one that
// it was asked for in a turn of.
func (r *reconciler) evacuationHandler() handler.TypedFuncs[*v1alpha1.Evacuation, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.Evacuation, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.Evacuation], q eviction.Requests) {
			r.ofEvacuation(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*v1alpha1.Evacuation], q eviction.Requests) {
			r.ofEvacuation(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v1alpha1.Evacuation], q eviction.Requests) {
			r.ofEvacuation(ctx, e.Object, q)
		},
	}
}

func (r *reconciler) ofEvacuation(ctx context.Context, e *v1alpha1.Evacuation, q eviction.Requests) {
	turnsOf(e, q)
	pod := &corev1.Pod{}
	pod.Namespace, pod.UID = e.Namespace, e.Spec.PodRef.UID
	r.ofPod(ctx, pod, q)
}
