package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// maxReads is the number of NodeMaintenances that are read from the API server at the same time.
	maxReads = 16
	// unknownPause is the time until a NodeMaintenance that could not be read is read again.
	unknownPause = 5 * time.Second
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=noderollouts;nodebudgets,verbs=list;watch
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch

// observe reads everything that the decision depends on; nil if there is no rollout, no budget, and
// no NodeMaintenance of a rollout. It returns when the snapshot is out of date without an event; 0 is never.
func (r *reconciler) observe(ctx context.Context, flying map[string]*writing) (*core.Snapshot, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var rollouts v1alpha1.NodeRolloutList
	if err := r.list(ctx, &rollouts); err != nil {
		return nil, 0, fmt.Errorf("list NodeRollouts: %w", err)
	}
	var budgets v1alpha1.NodeBudgetList
	if err := r.list(ctx, &budgets); err != nil {
		return nil, 0, fmt.Errorf("list NodeBudgets: %w", err)
	}
	var maintenances v1alpha1.NodeMaintenanceList
	if err := r.list(ctx, &maintenances); err != nil {
		return nil, 0, fmt.Errorf("list NodeMaintenances: %w", err)
	}
	some := len(rollouts.Items)+len(budgets.Items) > 0
	if r.any.Store(some); !some && !slices.ContainsFunc(maintenances.Items, isOfRollout) {
		return nil, 0, nil
	}
	if err := r.catchUp(ctx); err != nil {
		return nil, 0, err
	}
	var nodes corev1.NodeList
	if err := r.list(ctx, &nodes); err != nil {
		return nil, 0, fmt.Errorf("list nodes: %w", err)
	}
	snapshot := &core.Snapshot{Nodes: kube.Pointers(nodes.Items)}
	snapshot.Now, snapshot.ClockSkewed = r.now()
	var rest time.Duration
	snapshot.Refused, rest = r.refusals.resting()
	snapshot.MachineKinds = r.machines
	var replace time.Duration
	snapshot.Unreplaced, replace = r.replacements.unreplaced()
	byName, due := r.rollouts.over(kube.Pointers(rollouts.Items))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		snapshot.Rollouts = append(snapshot.Rollouts, flying[name].over(byName[name]))
	}
	due = kube.Soonest(due, r.observeJobs(ctx, snapshot))
	due = kube.Soonest(due, r.observeBudgets(snapshot, kube.Pointers(budgets.Items)))
	again := r.observeMaintenances(ctx, snapshot, kube.Pointers(maintenances.Items), startsOf(flying))
	return snapshot, kube.Soonest(due, again, rest, replace), nil
}

func isOfRollout(m v1alpha1.NodeMaintenance) bool { return m.Labels[v1alpha1.RolloutLabel] != "" }

// list lists objects of the cache, which must not be changed.
func (r *reconciler) list(ctx context.Context, list client.ObjectList) error {
	return r.client.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
}

// catchUp reads once what the former manager wrote, which the cache of a new one may lack.
func (r *reconciler) catchUp(ctx context.Context) error {
	if r.caughtUp {
		return nil
	}
	var rollouts v1alpha1.NodeRolloutList
	var maintenances v1alpha1.NodeMaintenanceList
	if err := r.live.List(ctx, &rollouts); err != nil {
		return fmt.Errorf("read NodeRollouts: %w", err)
	}
	if err := r.live.List(ctx, &maintenances, client.HasLabels{v1alpha1.RolloutLabel}); err != nil {
		return fmt.Errorf("read NodeMaintenances: %w", err)
	}
	var budgets v1alpha1.NodeBudgetList
	if err := r.live.List(ctx, &budgets); err != nil {
		return fmt.Errorf("read NodeBudgets: %w", err)
	}
	for _, one := range kube.Pointers(rollouts.Items) {
		r.rollouts.note(one)
	}
	for _, one := range kube.Pointers(budgets.Items) {
		r.budgets.note(one)
	}
	for _, one := range kube.Pointers(maintenances.Items) {
		r.maintenances.note(one)
	}
	r.caughtUp = true
	return nil
}

// observeMaintenances adds all NodeMaintenances. Those that the status of a rollout or budget names and
// the cache does not have are read from the API server; those that are being created are unknown.
func (r *reconciler) observeMaintenances(
	ctx context.Context, snapshot *core.Snapshot, cached []*v1alpha1.NodeMaintenance, creating sets.Set[string],
) (due time.Duration) {
	byName, due := r.maintenances.over(cached)
	snapshot.Unknown = map[string]bool{}
	var missing []string
	recorded := workingOf(snapshot.Rollouts).Union(countedBy(snapshot.Budgets)).Union(creating)
	r.flights.keep(recorded)
	for name := range recorded {
		switch {
		case byName[name] != nil:
		case creating.Has(name):
			snapshot.Unknown[name] = true
		case !r.maintenances.isAbsent(name):
			missing = append(missing, name)
		}
	}
	for name, one := range r.read(ctx, missing) {
		if one != nil {
			byName[name] = one
			continue
		}
		snapshot.Unknown[name] = true
		due = kube.Soonest(due, r.unread[name].Sub(r.clock.Now()))
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		snapshot.Maintenances = append(snapshot.Maintenances, byName[name])
	}
	return due
}

// workingOf returns the names of the NodeMaintenances that rollouts have recorded.
func workingOf(rollouts []*v1alpha1.NodeRollout) sets.Set[string] {
	names := sets.New[string]()
	for _, one := range rollouts {
		for i := range one.Status.Working {
			if name := one.Status.Working[i].NodeMaintenanceName; name != "" {
				names.Insert(name)
			}
		}
	}
	return names
}

// read reads NodeMaintenances from the API server. Those that do not exist are left out, those that
// are unknown are nil.
func (r *reconciler) read(ctx context.Context, names []string) map[string]*v1alpha1.NodeMaintenance {
	now, all := r.clock.Now(), map[string]*v1alpha1.NodeMaintenance{}
	maps.DeleteFunc(r.unread, func(_ string, until time.Time) bool { return !now.Before(until) })
	names = slices.DeleteFunc(names, func(name string) bool {
		_, unread := r.unread[name]
		if unread {
			all[name] = nil
		}
		return unread
	})
	found, errs := make([]*v1alpha1.NodeMaintenance, len(names)), make([]error, len(names))
	kube.Parallel(maxReads, len(names), func(i int) {
		found[i] = &v1alpha1.NodeMaintenance{}
		errs[i] = r.live.Get(ctx, client.ObjectKey{Name: names[i]}, found[i])
	})
	for i, name := range names {
		switch {
		case errs[i] == nil:
			all[name] = found[i]
			r.maintenances.note(found[i])
		case apierrors.IsNotFound(errs[i]) && !r.flights.mayCreate(name, now):
			r.maintenances.noteAbsent(name)
		default:
			all[name], r.unread[name] = nil, now.Add(unknownPause)
		}
	}
	return all
}
