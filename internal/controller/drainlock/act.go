package drainlock

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=drainrecords/status,verbs=update

// record writes the status under the version that it was decided on.
func (n *nodes) record(ctx context.Context, seen *core.Snapshot, decision core.Decision) error {
	if decision.Status == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	written := seen.Record.DeepCopy()
	written.Status = *decision.Status
	if err := n.client.Status().Update(ctx, written); err != nil {
		return fmt.Errorf("write the status of the drain record: %w", err)
	}
	n.metrics.wrote(seen.Record, written, seen.Now)
	n.statusWrites.wrote(written.Name, seen.Now)
	seen.Record = written
	n.emit(decision.Events...)
	return nil
}

// act makes the one write of a step. A failed write to a budget, node or pod is noted so that the
// next decision leaves the object alone. So is a stray lock that keeps coming back, which must not
// delay other locks.
func (n *nodes) act(ctx context.Context, seen *core.Snapshot, step core.Step) error {
	object := objectOf(step)
	err := n.take(ctx, seen, step)
	switch {
	case object == nil:
		return err
	case err == nil:
		n.refusals.drop(seen.Record.Name, object.GetUID())
		return nil
	case ctx.Err() != nil, kube.IsStale(err) && !step.Stray:
		return err
	}
	log.FromContext(ctx).Info("Postponed a refused step", "step", step.Kind,
		"object", client.ObjectKeyFromObject(object), "reason", excerpt.Of(err.Error(), maxLogged))
	n.refusals.add(seen.Record.Name, object.GetUID(), err.Error(), n.clock.Now())
	return nil
}

func objectOf(step core.Step) client.Object {
	switch {
	case step.Budget != nil:
		return step.Budget
	case step.Node != nil:
		return step.Node
	case step.Pod != nil:
		return step.Pod
	}
	return nil
}

func (n *nodes) take(ctx context.Context, seen *core.Snapshot, step core.Step) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var err error
	switch step.Kind {
	case "":
		return nil
	case core.TakeMutex, core.GiveMutex:
		err = n.writeMutex(ctx, seen, step)
	case core.WriteLock, core.RemoveLock:
		err = annotate(ctx, n.client, step.Budget, v1alpha1.LockAnnotation, step.Lock)
	case core.WritePromise, core.RemovePromise:
		err = annotate(ctx, n.client, step.Node, v1alpha1.RebootPromiseAnnotation, step.Promise)
	case core.DeletePod:
		return n.deletePod(ctx, step)
	case core.Finish:
		err = n.finish(ctx, seen.Record)
	default:
		err = fmt.Errorf("step %q is unknown", step.Kind)
	}
	if err != nil {
		return err
	}
	logger := log.FromContext(ctx).WithValues("step", step.Kind)
	if step.Budget != nil {
		logger = logger.WithValues("budget", client.ObjectKeyFromObject(step.Budget))
	}
	logger.Info("Completed a step of the lock protocol")
	n.emit(step.Events...)
	return nil
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=release
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=drain-lock-mutex,verbs=update,namespace=release

// writeMutex writes or creates the Lease. The second of two writers gets a conflict.
func (n *nodes) writeMutex(ctx context.Context, seen *core.Snapshot, step core.Step) error {
	mutex := &coordinationv1.Lease{}
	if seen.Mutex != nil {
		seen.Mutex.DeepCopyInto(mutex)
	}
	mutex.Namespace, mutex.Name = n.namespace, v1alpha1.DrainLockMutex
	mutex.ResourceVersion, mutex.Spec = step.Mutex.ResourceVersion, step.Mutex.Spec
	if mutex.ResourceVersion != "" {
		return wrap("write the mutex", n.client.Update(ctx, mutex))
	}
	err := n.client.Create(ctx, mutex)
	switch {
	case apierrors.IsAlreadyExists(err):
		return apierrors.NewConflict(coordinationv1.Resource("leases"), mutex.Name, err)
	case apierrors.IsNotFound(err):
		// A missing namespace is not a stale read.
		return fmt.Errorf("create Lease %s/%s: %s", n.namespace, mutex.Name, err.Error())
	}
	return wrap("create the mutex", err)
}

// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=patch

// annotate sets or removes an annotation. A change that does not last is an error, as it would be
// repeated forever.
func annotate[T client.Object](ctx context.Context, c client.Client, object T, key, value string) error {
	stored, err := kube.Annotate(ctx, c, object, key, value)
	if err == nil && stored.GetAnnotations()[key] != value {
		return errors.New("the API server took the change, but something else in the cluster changes annotation " + key)
	}
	return err
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=delete

// deletePod deletes exactly the observed pod. The snapshot may be older than our own deletion,
// which is reported once.
func (n *nodes) deletePod(ctx context.Context, step core.Step) error {
	key := client.ObjectKeyFromObject(step.Pod)
	pod := &corev1.Pod{}
	if err := n.client.Get(ctx, key, pod); err != nil {
		return wrap("get pod "+key.String(), client.IgnoreNotFound(err))
	}
	if pod.UID != step.Pod.UID || pod.DeletionTimestamp != nil {
		return nil
	}
	err := n.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
	if kube.IsStale(err) {
		return nil
	}
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Deleted a pod", "pod", key, "reason", "lock timeout with onLockTimeout Delete")
	n.emit(step.Events...)
	return nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=drainrecords,verbs=delete

func (n *nodes) finish(ctx context.Context, record *v1alpha1.DrainRecord) error {
	precondition := client.Preconditions{UID: &record.UID, ResourceVersion: &record.ResourceVersion}
	return wrap("delete the drain record", n.client.Delete(ctx, record, precondition))
}
