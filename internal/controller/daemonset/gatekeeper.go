package daemonset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/daemonset"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

// gatekeeper releases or removes the pods that have our scheduling gate.
type gatekeeper struct {
	client client.Client
	live   client.Reader // reads from the API server
	emit   func(...event.Event)
	clock  clock.Clock
	// removals delays the removal of pods that a DaemonSet creates again on a node.
	removals *flowcontrol.Backoff
}

// Reconcile releases or removes one pod.
func (r *gatekeeper) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, request.NamespacedName, pod); err != nil {
		return reconcile.Result{}, wrap("get the pod", client.IgnoreNotFound(err))
	}
	if !core.Held(pod) || pod.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	fate, why, err := r.decide(ctx, pod)
	if err != nil {
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).V(1).Info("Decided about a gated pod", "fate", fate, "reason", why)
	var again time.Duration
	switch fate {
	case core.Released:
		err = r.release(ctx, pod, why)
	case core.Removed:
		again, err = r.remove(ctx, pod)
	}
	return reconcile.Result{RequeueAfter: again}, kube.WithoutStale(ctx, err)
}

// decide reads the node. The cache may be behind the API server, by which the webhook has gated the
// pod, so only the API server itself releases it.
func (r *gatekeeper) decide(ctx context.Context, pod *corev1.Pod) (fate core.Fate, why string, err error) {
	for _, reader := range []client.Reader{r.client, r.live} {
		node, err := nodeOf(ctx, reader, kube.PinnedNode(pod))
		if err != nil {
			return "", "", err
		}
		if fate, why = core.FateOf(pod, node); fate != core.Released {
			break
		}
	}
	return fate, why, nil
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=patch

// release removes our gate.
func (r *gatekeeper) release(ctx context.Context, pod *corev1.Pod, why string) error {
	changed := pod.DeepCopy()
	changed.Spec.SchedulingGates = slices.DeleteFunc(changed.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool {
		return gate.Name == v1alpha1.MaintenanceGate
	})
	if err := r.client.Patch(ctx, changed, kube.Change(pod)); err != nil {
		return fmt.Errorf("release the pod: %w", err)
	}
	log.FromContext(ctx).Info("Released a pod of a DaemonSet", "reason", why)
	r.emit(event.DaemonSetPodReleased(changed, why))
	return nil
}

// remove deletes the pod, or returns when to do so.
func (r *gatekeeper) remove(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	node := kube.PinnedNode(pod)
	id := string(podclass.Owner(pod).UID) + " " + node
	if r.removals.IsInBackOffSinceUpdate(id, r.clock.Now()) {
		return r.removals.Get(id), nil
	}
	precondition := client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}
	if err := r.client.Delete(ctx, pod, precondition); err != nil {
		return 0, fmt.Errorf("remove the pod: %w", err)
	}
	r.removals.GC()
	r.removals.Next(id, r.clock.Now())
	log.FromContext(ctx).Info("Removed a gated pod of a DaemonSet", "node", node)
	return 0, nil
}
