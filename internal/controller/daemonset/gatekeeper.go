package daemonset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/daemonset"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/kube"
)

// gatekeeper looks after the pods that our scheduling gate holds back.
type gatekeeper struct {
	// client reads from the cache, live from the API server.
	client client.Client
	live   client.Reader
	// emit publishes events, each on the object that it is about.
	emit func(...event.Event)
}

// Reconcile lets one pod go, or removes it, when its time has come.
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
	log.FromContext(ctx).V(1).Info("Decided about a pod that is held back", "fate", fate, "because", why)
	switch fate {
	case core.Released:
		err = r.release(ctx, pod, why)
	case core.Removed:
		err = r.remove(ctx, pod)
	}
	return reconcile.Result{}, withoutStale(ctx, err)
}

// decide looks at the node. The cache may be behind the API server, which has
// told the webhook to hold the pod back, so only the API server itself releases it.
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

// release takes our gate away and leaves those of others.
func (r *gatekeeper) release(ctx context.Context, pod *corev1.Pod, why string) error {
	changed := pod.DeepCopy()
	changed.Spec.SchedulingGates = slices.DeleteFunc(changed.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool {
		return gate.Name == v1alpha1.MaintenanceGate
	})
	if err := r.client.Patch(ctx, changed, kube.Change(pod)); err != nil {
		return fmt.Errorf("release the pod: %w", err)
	}
	log.FromContext(ctx).Info("Released a pod of a DaemonSet", "because", why)
	r.emit(event.DaemonSetPodReleased(changed, why))
	return nil
}

func (r *gatekeeper) remove(ctx context.Context, pod *corev1.Pod) error {
	precondition := client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}
	if err := r.client.Delete(ctx, pod, precondition); err != nil {
		return fmt.Errorf("remove the pod: %w", err)
	}
	log.FromContext(ctx).Info("Removed a pod of a DaemonSet that was held back", "node", kube.PinnedNode(pod))
	return nil
}
