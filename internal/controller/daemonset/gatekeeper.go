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

// gatekeeper looks after the pods that our scheduling gate holds back.
type gatekeeper struct {
	// client reads from the cache, live from the API server.
	client client.Client
	live   client.Reader
	// emit publishes events, each on the object that it is about.
	emit  func(...event.Event)
	clock clock.Clock
	// removals space out the pods of one DaemonSet that are removed from one node:
	// who makes them again all the same is not raced with.
	removals *flowcontrol.Backoff
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
	var again time.Duration
	switch fate {
	case core.Released:
		err = r.release(ctx, pod, why)
	case core.Removed:
		again, err = r.remove(ctx, pod)
	}
	return reconcile.Result{RequeueAfter: again}, kube.WithoutStale(ctx, err)
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
	log.FromContext(ctx).Info("Removed a pod of a DaemonSet that was held back", "node", node)
	return 0, nil
}
