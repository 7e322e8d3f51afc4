package daemonset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/daemonset"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

// evacuator answers Evacuations while our class is active in them.
type evacuator struct {
	client client.Client
	emit   func(...event.Event)
	clock  clock.Clock
	// refusals delays the retries of refused deletions, by the UID of the pod, and removals those of
	// pods that a DaemonSet creates again on a node during its maintenance.
	refusals, removals *flowcontrol.Backoff
}

// Reconcile takes one evacuation one step further.
func (r *evacuator) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	snapshot, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	if snapshot == nil {
		return reconcile.Result{}, nil
	}
	decision := core.Decide(*snapshot)
	stored, err := r.record(ctx, snapshot.Evacuation, decision.Status)
	if err != nil {
		return reconcile.Result{}, kube.WithoutStale(ctx, err)
	}
	if !decision.Delete {
		return reconcile.Result{}, nil
	}
	snapshot.Evacuation = stored
	again, err := r.remove(ctx, snapshot, decision.Events)
	return reconcile.Result{RequeueAfter: again}, kube.WithoutStale(ctx, err)
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=list;watch
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=get;list;watch

// observe reads what a decision needs; nil if there is nothing to decide.
func (r *evacuator) observe(ctx context.Context, key client.ObjectKey) (*core.Snapshot, error) {
	e := &v1alpha1.Evacuation{}
	if err := r.client.Get(ctx, key, e); err != nil {
		return nil, wrap("get the evacuation", client.IgnoreNotFound(err))
	}
	if !core.Active(e) {
		return nil, nil
	}
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Spec.PodRef.Name}, pod)
	if err != nil || pod.UID != e.Spec.PodRef.UID {
		// A pod that the cache does not show yet has an event.
		return nil, wrap("get the pod", client.IgnoreNotFound(err))
	}
	snapshot := &core.Snapshot{Now: r.clock.Now(), Evacuation: e, Pod: pod}
	if snapshot.Node, err = nodeOf(ctx, r.client, pod.Spec.NodeName); err != nil {
		return nil, err
	}
	var list v1alpha1.NodeMaintenanceList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list maintenances: %w", err)
	}
	for i := range list.Items {
		snapshot.Maintenances = append(snapshot.Maintenances, &list.Items[i])
	}
	return snapshot, nil
}

// nodeOf reads a node; nil if it does not exist.
func nodeOf(ctx context.Context, c client.Reader, name string) (*corev1.Node, error) {
	if name == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nil, wrap("get node "+name, client.IgnoreNotFound(err))
	}
	return node, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// record writes the status, if there is one, under the version that it was decided on, and returns the
// stored object.
func (r *evacuator) record(
	ctx context.Context, e *v1alpha1.Evacuation, status *v1alpha1.EvacuationStatus,
) (*v1alpha1.Evacuation, error) {
	if status == nil {
		return e, nil
	}
	return kube.WriteEvacuationStatus(ctx, r.client, e, *status)
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=delete

// remove deletes the pod of this UID with its grace period. The status reports a refusal and a pod that
// has come back; both are retried.
func (r *evacuator) remove(ctx context.Context, s *core.Snapshot, events []event.Event) (time.Duration, error) {
	id, place := string(s.Pod.UID), placeOf(s)
	if r.refusals.IsInBackOffSinceUpdate(id, s.Now) {
		return r.refusals.Get(id), nil
	}
	if r.removals.IsInBackOffSinceUpdate(place, s.Now) {
		_, err := r.record(ctx, s.Evacuation, core.Return(s.Evacuation))
		return r.removals.Get(place), err
	}
	logger := log.FromContext(ctx).WithValues("pod", s.Pod.Name, "node", s.Pod.Spec.NodeName)
	err := r.client.Delete(ctx, s.Pod, client.Preconditions{UID: &s.Pod.UID})
	switch {
	case err == nil:
		logger.Info("Deleted a pod of a DaemonSet")
		r.refusals.DeleteEntry(id)
		r.removals.GC()
		r.removals.Next(place, s.Now)
		r.emit(events...)
		return 0, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		logger.V(1).Info("Pod of a DaemonSet is already gone")
		r.refusals.DeleteEntry(id)
		return 0, nil
	case ctx.Err() != nil:
		return 0, fmt.Errorf("delete pod %s: %w", s.Pod.Name, err)
	}
	logger.Info("Deletion of a pod of a DaemonSet refused", "reason", err.Error())
	r.refusals.GC()
	r.refusals.Next(id, s.Now)
	_, recordErr := r.record(ctx, s.Evacuation, core.Refuse(s.Evacuation, err.Error()))
	return r.refusals.Get(id), recordErr
}

// placeOf returns a key of a DaemonSet on a node under one maintenance: the next one removes the pod at
// once.
func placeOf(s *core.Snapshot) string {
	place := fmt.Sprintf("%s %s", podclass.Owner(s.Pod).UID, s.Node.Name)
	if m := maintenance.Draining(s.Node, s.Maintenances); m != nil {
		place += " " + string(m.UID)
	}
	return place
}
