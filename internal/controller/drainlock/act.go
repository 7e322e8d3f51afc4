package drainlock

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=drainrecords/status,verbs=update

// record writes the status, if there is one to write, under the version that it
// was decided on.
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
	n.spoken.wrote(written.Name, seen.Now)
	seen.Record = written
	n.emit(decision.Events...)
	return nil
}

// act makes the one write of a step. What fails of a budget or a pod is noted with
// it, and the next decision leaves it alone. So is a lock that nobody asks for and
// that somebody goes on writing: what is asked for does not pause with it.
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
	log.FromContext(ctx).Info("A step with the locks of a node is refused", "step", step.Kind,
		"object", client.ObjectKeyFromObject(object), "because", excerpt.Of(err.Error(), maxLogged))
	n.refusals.add(seen.Record.Name, object.GetUID(), err.Error(), n.clock.Now())
	return nil
}

// objectOf is the budget, the node or the pod that a step writes to; nil if it does to
// none of them.
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
		err = writeLock(ctx, n.client, step.Budget, step.Lock)
	case core.WritePromise, core.RemovePromise:
		err = n.writePromise(ctx, step.Node, step.Promise)
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
	logger.Info("Took a step with the locks of a node")
	n.emit(step.Events...)
	return nil
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=release
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=drain-lock-mutex,verbs=update,namespace=release

// writeMutex writes the Lease, or creates it. Who comes second is refused.
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
		// It is no old state that the namespace is missing.
		return fmt.Errorf("create Lease %s/%s: %s", n.namespace, mutex.Name, err.Error())
	}
	return wrap("create the mutex", err)
}

// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=patch

// writeLock sets the lock of a budget, or removes it if there is none to set. What
// does not last is an error: written again at once, it would be so for ever.
func writeLock(ctx context.Context, c client.Client, budget *policyv1.PodDisruptionBudget, lock string) error {
	changed := budget.DeepCopy()
	if lock == "" {
		delete(changed.Annotations, v1alpha1.LockAnnotation)
	} else {
		if changed.Annotations == nil {
			changed.Annotations = map[string]string{}
		}
		changed.Annotations[v1alpha1.LockAnnotation] = lock
	}
	if err := c.Patch(ctx, changed, kube.Change(budget)); err != nil {
		return err
	}
	if changed.Annotations[v1alpha1.LockAnnotation] != lock {
		return errors.New("the API server took the change, but something else in the cluster changes annotation " + v1alpha1.LockAnnotation)
	}
	return nil
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=delete

// deletePod deletes the very pod, unless it has been by now: the snapshot may be
// older than our own deletion, which is told of once.
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
	log.FromContext(ctx).Info("Deleted a pod past its budgets, as the maintenance asks", "pod", key)
	n.emit(step.Events...)
	return nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=drainrecords,verbs=delete

// finish deletes the record that was decided on.
func (n *nodes) finish(ctx context.Context, record *v1alpha1.DrainRecord) error {
	precondition := client.Preconditions{UID: &record.UID, ResourceVersion: &record.ResourceVersion}
	return wrap("delete the drain record", n.client.Delete(ctx, record, precondition))
}
