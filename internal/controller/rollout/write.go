package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

// writing is the writes of one rollout that are due.
type writing struct {
	*reconciler
	// before is the rollout that was decided on.
	before   *v1alpha1.NodeRollout
	decision *core.RolloutDecision
	starts   []*v1alpha1.NodeMaintenance
	changes  []core.Change
	// replaced are the nodes whose machine is deleted.
	replaced []core.Replacement
	// names are the NodeMaintenances to write, also those that rest.
	names []string
	// jobs and stopJobs are to be created and deleted, jobNames those to create, also those that rest.
	jobs     []core.JobStart
	stopJobs []*batchv1.Job
	jobNames []string
	// due is when the rollout no longer rests; 0 if it does not.
	due time.Duration
	// ledgers count its starts. With reports it writes nothing else.
	ledgers []*ledger
	reports bool
	// orphans is true if the changes are those of rollouts that the decision did not know.
	orphans bool
	// exists reports whether the decision knew a NodeMaintenance of a name.
	exists func(name string) bool
}

// writing returns the writes of a decision that do not rest.
func (r *reconciler) writing(decision *core.RolloutDecision) *writing {
	w := &writing{reconciler: r, before: decision.Rollout, decision: decision}
	for _, m := range decision.Starts {
		if w.wants(m.Name) {
			w.starts = append(w.starts, m)
		}
	}
	for _, c := range decision.Changes {
		if w.wants(c.Before.Name) && !r.outdated.has(c.Before) {
			w.changes = append(w.changes, c)
		}
	}
	w.chooseJobs()
	w.replaced = r.replacementsOf(decision)
	w.due = r.failures.left(w.before.Name)
	return w
}

// wants notes that a NodeMaintenance is to be written, and returns false while it rests.
func (w *writing) wants(name string) bool {
	w.names = append(w.names, name)
	return w.refusals.left(name) == 0
}

// idle reports whether there is nothing to write now.
func (w *writing) idle() bool {
	d := w.decision
	if w.due > 0 || w.outdated.has(w.before) {
		return true
	}
	return !d.AddFinalizer && !d.RemoveFinalizer && len(w.starts) == 0 && len(w.changes) == 0 && len(w.jobs)+len(w.stopJobs)+len(w.replaced) == 0 && !w.changed()
}

// changed reports whether the status has changed.
func (w *writing) changed() bool {
	return !equality.Semantic.DeepEqual(w.before.Status, w.decision.Status)
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=noderollouts,verbs=patch
// +kubebuilder:rbac:groups=ebbtide.dev,resources=noderollouts/status,verbs=patch

// write makes the writes. Budgets and the status are written before anything starts.
func (w *writing) write(ctx context.Context) error {
	for _, l := range w.ledgers {
		if l.write(ctx) != nil {
			return errUncounted
		}
	}
	if len(w.ledgers) > 0 {
		w.flights.own(w.starts)
	}
	if w.reports {
		return nil
	}
	if w.orphans {
		return w.release(ctx)
	}
	stored, err := w.record(ctx)
	if err != nil {
		w.outdated.add(w.before, err)
		return err
	}
	complete := w.act(ctx)
	w.actOnJobs(ctx)
	w.replace(ctx)
	if w.decision.RemoveFinalizer && complete {
		if stored, err = kube.RemoveFinalizer(ctx, w.client, stored, v1alpha1.RolloutFinalizer); err != nil {
			return fmt.Errorf("remove the finalizer: %w", err)
		}
		w.rollouts.note(stored)
		log.FromContext(ctx).Info("Released NodeRollout", "rollout", stored.Name)
	}
	w.emit(slices.DeleteFunc(slices.Clone(w.decision.Events), func(e event.Event) bool {
		return e.Reason == v1alpha1.EventRolloutNodeStarted && !complete
	})...)
	return nil
}

// release makes the changes of NodeMaintenances whose rollout the API server does not have either.
func (w *writing) release(ctx context.Context) error {
	var rollouts v1alpha1.NodeRolloutList
	if err := w.live.List(ctx, &rollouts); err != nil {
		return fmt.Errorf("read NodeRollouts: %w", err)
	}
	w.changes = slices.DeleteFunc(w.changes, func(c core.Change) bool {
		var attempt core.Attempt
		err := json.Unmarshal([]byte(c.Before.Annotations[v1alpha1.RolloutAttemptAnnotation]), &attempt)
		return err != nil || slices.ContainsFunc(rollouts.Items, func(r v1alpha1.NodeRollout) bool { return string(r.UID) == attempt.UID })
	})
	w.act(ctx)
	return nil
}

// record writes the finalizer and the status. The start of nodes that are recorded already, or the
// deletion of machines, is a write without effect, which is refused if the rollout has changed.
func (w *writing) record(ctx context.Context) (stored *v1alpha1.NodeRollout, err error) {
	stored = w.before
	if w.decision.AddFinalizer {
		if stored, err = kube.AddFinalizer(ctx, w.client, stored, v1alpha1.RolloutFinalizer); err != nil {
			return nil, fmt.Errorf("add the finalizer: %w", err)
		}
		w.rollouts.note(stored)
	}
	if !w.changed() && len(w.starts) == 0 && len(w.replaced) == 0 {
		return stored, nil
	}
	changed := stored.DeepCopy()
	changed.Status = w.decision.Status
	if err := w.client.Status().Patch(ctx, changed, kube.Change(stored)); err != nil {
		return nil, fmt.Errorf("write the status: %w", err)
	}
	w.rollouts.note(changed)
	log.FromContext(ctx).V(1).Info("Wrote the status of a rollout", "rollout", changed.Name, "summary", changed.Status.Summary)
	return changed, nil
}

// act creates and changes NodeMaintenances, and returns true if all were written. One that is refused
// delays no other, and no read of other controllers waits for these writes, which may hang.
func (w *writing) act(ctx context.Context) (complete bool) {
	var mu sync.Mutex
	complete = len(w.starts) == len(w.decision.Starts) && len(w.changes) == len(w.decision.Changes)
	each := func(count int, name func(int) string, do func(i int) error) {
		kube.Parallel(maxWrites, count, func(i int) {
			if w.settle(ctx, name(i), do(i)) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			complete = false
		})
	}
	each(len(w.starts), func(i int) string { return w.starts[i].Name }, func(i int) error { return w.create(ctx, w.starts[i]) })
	each(len(w.changes), func(i int) string { return w.changes[i].Before.Name }, func(i int) error { return w.change(ctx, w.changes[i]) })
	return complete
}

// settle accounts for the result of a write of a NodeMaintenance, and returns true if it was made.
func (w *writing) settle(ctx context.Context, name string, err error) bool {
	logger := log.FromContext(ctx).WithValues("rollout", w.before.Name, "maintenance", name)
	switch {
	case err == nil:
		w.refusals.drop(name)
	case kube.IsStale(err):
		logger.V(1).Info("Dropped a stale write", "reason", err.Error())
	default:
		w.refusals.add(name, err)
		logger.Error(err, "Failed to write a NodeMaintenance, retrying")
	}
	return err == nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=create

// create creates a NodeMaintenance. If it exists already, the next decision knows it.
func (w *writing) create(ctx context.Context, m *v1alpha1.NodeMaintenance) error {
	created := m.DeepCopy()
	w.maintenances.forget(m.Name)
	err := w.client.Create(ctx, created, client.DisableReadYourWritesConsistency)
	switch {
	case err == nil:
		w.maintenances.note(created)
		log.FromContext(ctx).Info("Created NodeMaintenance", "rollout", w.before.Name, "maintenance", m.Name)
	case isUnanswered(err):
		w.flights.leave(m.Name, w.clock.Now())
		return err
	case apierrors.IsAlreadyExists(err):
		err = w.find(ctx, m)
	default:
		w.maintenances.noteAbsent(m.Name)
	}
	w.flights.settle(m.Name)
	return err
}

// isUnanswered reports whether a request may still succeed.
func isUnanswered(err error) bool {
	var status apierrors.APIStatus
	answered := errors.As(err, &status) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err)
	return !answered && !utilnet.IsConnectionRefused(err)
}

// find reads a NodeMaintenance that exists already. It fails if the decision knew it.
func (w *writing) find(ctx context.Context, m *v1alpha1.NodeMaintenance) error {
	found := &v1alpha1.NodeMaintenance{}
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(m), found); err != nil {
		return fmt.Errorf("read NodeMaintenance %s, which exists: %w", m.Name, err)
	}
	w.maintenances.note(found)
	if w.exists(m.Name) {
		return fmt.Errorf("NodeMaintenance %s exists and is not of this rollout", m.Name)
	}
	return nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=patch;delete

// change changes or deletes a NodeMaintenance. One that is deleted is released by a later decision:
// released first, it would stay if the manager was killed in between.
func (w *writing) change(ctx context.Context, c core.Change) (err error) {
	logger := log.FromContext(ctx).WithValues("rollout", w.before.Name, "maintenance", c.Before.Name)
	defer func() { w.outdated.add(c.Before, err) }()
	if c.Delete {
		asDecided := client.Preconditions{UID: &c.Before.UID, ResourceVersion: &c.Before.ResourceVersion}
		if err := w.client.Delete(ctx, c.Before.DeepCopy(), asDecided, client.DisableReadYourWritesConsistency); err != nil {
			return fmt.Errorf("delete NodeMaintenance %s: %w", c.Before.Name, err)
		}
		logger.Info("Deleted NodeMaintenance")
		return nil
	}
	changed := c.After.DeepCopy()
	if err := w.client.Patch(ctx, changed, kube.Change(c.Before), client.DisableReadYourWritesConsistency); err != nil {
		return fmt.Errorf("change NodeMaintenance %s: %w", c.Before.Name, err)
	}
	w.maintenances.note(changed)
	logger.Info("Changed NodeMaintenance", "stage", changed.Spec.Stage, "deadline", changed.Spec.Deadline)
	return nil
}
