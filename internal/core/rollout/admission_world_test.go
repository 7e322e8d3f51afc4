package rollout_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
)

// requestNodes creates a NodeMaintenance of a user that is older than the next.
func (w *world) requestNodes(name string, selector *corev1.NodeSelector, change ...func(*v1alpha1.NodeMaintenance)) {
	m := &v1alpha1.NodeMaintenance{ObjectMeta: w.meta(name)}
	m.Spec = v1alpha1.NodeMaintenanceSpec{NodeSelector: selector, Stage: v1alpha1.StageDrain}
	m.Finalizers = []string{v1alpha1.MaintenanceCompletionFinalizer}
	for _, c := range change {
		c(m)
	}
	w.maintenances = append(w.maintenances, m)
	w.now = w.now.Add(time.Second)
}

// taking is a node that a NodeMaintenance of a user has cordoned.
type taking struct {
	node string
	by   *v1alpha1.NodeMaintenance
	// first is true if no other held the node.
	first bool
}

// take cordons nodes for some NodeMaintenances of users, as their controller does when it sees these
// budgets.
func (w *world) take(seen []*v1alpha1.NodeBudget, some func(*v1alpha1.NodeMaintenance) bool) (taken []taking) {
	budgets := nodebudget.Compile(seen)
	for _, n := range slices.Clone(w.nodes) {
		selecting := slices.DeleteFunc(w.selecting(n), func(m *v1alpha1.NodeMaintenance) bool { return !some(m) })
		holders := cordon.Holders(n)
		held := len(holders) == 0 && budgets.Holding(n, limitedOf(w.selecting(n))) != nil
		for _, m := range selecting {
			if held && maintenance.Limited(m) || slices.Contains(holders, m.Name) {
				continue
			}
			w.hold(n.Name, m.Name, true)
			taken = append(taken, taking{n.Name, m, len(holders) == 0})
		}
	}
	return taken
}

func limitedOf(all []*v1alpha1.NodeMaintenance) (uids []types.UID) {
	for _, m := range all {
		if maintenance.Limited(m) {
			uids = append(uids, m.UID)
		}
	}
	return uids
}

// selecting returns the NodeMaintenances of users in Cordon and Drain that select a node.
func (w *world) selecting(n *corev1.Node) (all []*v1alpha1.NodeMaintenance) {
	for _, m := range w.maintenances {
		stage := maintenance.Stage(m)
		if m.Labels[v1alpha1.RolloutLabel] != "" || stage != v1alpha1.StageCordon && stage != v1alpha1.StageDrain {
			continue
		}
		if selector := maintenance.Selector(m); selector != nil && selector.Match(n) {
			all = append(all, m)
		}
	}
	return all
}

// release uncordons the nodes that a NodeMaintenance of a user holds and no longer selects.
func (w *world) release(name string) {
	m, _ := find(w.maintenances, name)
	for _, n := range slices.Clone(w.nodes) {
		if slices.Contains(cordon.Holders(n), name) && !slices.Contains(w.selecting(n), m) {
			w.hold(n.Name, name, false)
		}
	}
}

// finishRequest ends a NodeMaintenance of a user in stage Complete.
func (w *world) finishRequest(name string) {
	w.release(name)
	w.editMaintenance(name, func(m *v1alpha1.NodeMaintenance) {
		m.Status.StageStatuses = append(m.Status.StageStatuses, v1alpha1.StageStatus{Name: v1alpha1.StageComplete, StartTimestamp: new(metav1.NewTime(w.now))})
		m.Finalizers = nil
	})
	w.collect()
}

// giveNodeBack completes one node of a NodeMaintenance of a user.
func (w *world) giveNodeBack(name, node string) {
	w.editMaintenance(name, func(m *v1alpha1.NodeMaintenance) {
		m.Spec.CompletedNodes = append(slices.Clone(m.Spec.CompletedNodes), v1alpha1.NodeReference{Name: node})
	})
	w.release(name)
}
