package rollout_test

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// isHeld reports whether a NodeBudget keeps a NodeMaintenance of a user from a node, as the controller
// of NodeMaintenances sees it, perhaps late.
func (s *simulation) isHeld(m *v1alpha1.NodeMaintenance, node string, percent int) bool {
	n, at := find(s.nodes, node)
	if at < 0 || !maintenance.Limited(m) || len(cordon.Holders(n)) > 0 {
		return false
	}
	budgets, uids := s.budgets, uidsOf(s.requestsFor(s.maintenances, node))
	if percent < 100 && s.chance(30) {
		budgets = s.cachedBudgets
	}
	if nodebudget.Compile(budgets).Holding(n, uids) != nil {
		s.seen.held++
		return true
	}
	// An old state of a budget admits no node that the present one does not admit.
	for _, b := range s.budgets {
		old, known := find(budgets, b.Name)
		if known >= 0 && equality.Semantic.DeepEqual(old.Spec, b.Spec) && nodebudget.Compile([]*v1alpha1.NodeBudget{b}).Holding(n, uids) != nil {
			s.t.Errorf("%s takes %s, which NodeBudget %s does not admit", m.Name, n.Name, b.Name)
		}
	}
	return false
}

// requestsFor returns the NodeMaintenances of users that want a node or have it.
func (s *simulation) requestsFor(all []*v1alpha1.NodeMaintenance, node string) (wanted []*v1alpha1.NodeMaintenance) {
	for _, m := range all {
		if wants(m, node) && isLive(m) && maintenance.Limited(m) {
			wanted = append(wanted, m)
		}
	}
	return wanted
}

func uidsOf(all []*v1alpha1.NodeMaintenance) (uids []types.UID) {
	for _, m := range all {
		uids = append(uids, m.UID)
	}
	return uids
}

// limiting returns the budgets that have to admit a node for a user.
func (o *oracle) limiting(n *corev1.Node) (limiting []*v1alpha1.NodeBudget) {
	for _, b := range o.view.Budgets {
		if b.Spec.AppliesTo == v1alpha1.NodeBudgetOfAll && has(o.selectedBy(b), n.Name) {
			limiting = append(limiting, b)
		}
	}
	return limiting
}

func lists(status *v1alpha1.NodeBudgetStatus, node string, uid types.UID) bool {
	return slices.ContainsFunc(status.Working, func(entry v1alpha1.BudgetNode) bool {
		return entry.Name == node && entry.NodeMaintenanceUID == uid
	})
}

// observeAdmitted finds the nodes that users have, and checks those that they get.
func (o *oracle) observeAdmitted(d *rollout.Decision) {
	var fresh []*corev1.Node
	for _, n := range o.view.Nodes {
		if o.isStarted(n) || len(o.requestsFor(o.view.Maintenances, n.Name)) == 0 {
			continue
		}
		limiting := o.limiting(n)
		if len(limiting) == 0 {
			continue
		}
		o.admitted[n.Name] = o.admitted[n.Name] || o.isTaken(n, limiting)
		if !o.admitted[n.Name] && o.isBegun(n, limiting) {
			o.seen.begun++
			o.admitted[n.Name], o.begun[n.Name] = true, true
			continue
		}
		if !o.admitted[n.Name] && o.admits(d, n, limiting) {
			fresh = append(fresh, n)
		}
	}
	for _, n := range fresh {
		o.admitted[n.Name] = true
	}
	for _, n := range fresh {
		o.checkAdmission(n)
	}
	o.checkBegun(d)
}

// isTaken reports whether a user has a node, or each budget lists it.
func (o *oracle) isTaken(n *corev1.Node, limiting []*v1alpha1.NodeBudget) bool {
	return slices.ContainsFunc(o.requestsFor(o.view.Maintenances, n.Name), func(m *v1alpha1.NodeMaintenance) bool {
		missing := slices.ContainsFunc(limiting, func(b *v1alpha1.NodeBudget) bool { return !lists(&b.Status, n.Name, m.UID) })
		return slices.Contains(cordon.Holders(n), m.Name) || !missing
	})
}

// admits reports whether a decision admits a node, which each budget has to do.
func (o *oracle) admits(d *rollout.Decision, n *corev1.Node, limiting []*v1alpha1.NodeBudget) bool {
	for _, m := range o.requestsFor(o.view.Maintenances, n.Name) {
		count := 0
		for i := range d.Budgets {
			if lists(&d.Budgets[i].Status, n.Name, m.UID) {
				count++
			}
		}
		if count > 0 {
			o.seen.admitted++
			if count != len(limiting) {
				o.t.Errorf("%d of %d NodeBudgets admit %s for %s", count, len(limiting), n.Name, m.Name)
			}
			return true
		}
	}
	return false
}

// checkAdmission checks that each budget has room for a node.
func (o *oracle) checkAdmission(n *corev1.Node) {
	for _, b := range o.limiting(n) {
		if reason := o.refuses(b, n); reason != "" {
			o.t.Errorf("NodeBudget %s admits %s: %s", b.Name, n.Name, reason)
		}
	}
}

// refuses returns why a budget must not admit a node; empty if it must.
func (o *oracle) refuses(b *v1alpha1.NodeBudget, n *corev1.Node) string {
	if !isValid(b) || o.view.RefusedBudgets[b.Name] != "" {
		return "it is invalid, or cannot be written"
	}
	nodes := o.selectedBy(b)
	switch others, domains := o.beside(n.Name, nodes, b.Spec.TopologyKey); {
	case others >= portion(b.Spec.MaxUnavailable, len(nodes)):
		return "it is full"
	case b.Spec.TopologyKey != "" && domains > 1:
		return "nodes of other domains are unavailable"
	}
	return ""
}

// checkWaits checks that a budget has no room for a node that waits for a user.
func (o *oracle) checkWaits() {
	for _, n := range o.view.Nodes {
		if o.admitted[n.Name] || o.isStarted(n) || len(o.requestsFor(o.view.Maintenances, n.Name)) == 0 {
			continue
		}
		limiting := o.limiting(n)
		if len(limiting) > 0 && !slices.ContainsFunc(limiting, func(b *v1alpha1.NodeBudget) bool { return o.refuses(b, n) != "" }) {
			o.t.Errorf("%s waits, and each of %d NodeBudgets has room", n.Name, len(limiting))
		}
	}
}

// checkAdmissions checks by what the API server has that no node that was admitted exceeds a budget,
// although the manager may not have seen all of it.
func (s *simulation) checkAdmissions(view *rollout.Snapshot, before []*v1alpha1.NodeBudget) {
	under := map[string]bool{}
	for _, m := range s.maintenances {
		if m.Labels[v1alpha1.RolloutLabel] != "" && isLive(m) {
			under[nodeOf(m)] = true
		}
	}
	o := &oracle{simulation: s, view: view}
	for _, b := range s.budgets {
		old, known := find(before, b.Name)
		if known < 0 || old == b {
			continue
		}
		nodes := o.selectedBy(b)
		count, most := o.countUnder(b, under), portion(b.Spec.MaxUnavailable, len(nodes))
		for _, name := range o.freshIn(old, b) {
			if count > most {
				s.t.Errorf("%s was admitted, and %d of %d nodes are under maintenance, NodeBudget %s allows %d", name, count, len(nodes), b.Name, most)
			}
		}
	}
}

// countUnder counts the nodes of a budget that it lists, or that rollouts have.
func (o *oracle) countUnder(b *v1alpha1.NodeBudget, under map[string]bool) (count int) {
	for _, n := range o.selectedBy(b) {
		if under[n.Name] || slices.ContainsFunc(b.Status.Working, func(entry v1alpha1.BudgetNode) bool { return entry.Name == n.Name }) {
			count++
		}
	}
	return count
}

// freshIn returns the available nodes that a write of a budget has admitted for users.
func (o *oracle) freshIn(old, b *v1alpha1.NodeBudget) (fresh []string) {
	for _, entry := range b.Status.Working {
		n, _ := find(o.view.Nodes, entry.Name)
		if entry.NodeMaintenanceUID != "" && !lists(&old.Status, entry.Name, entry.NodeMaintenanceUID) && isReady(n) && !n.Spec.Unschedulable {
			fresh = append(fresh, entry.Name)
		}
	}
	return fresh
}

// checkRequests expects at the end that each node of a user is taken, or that a full budget names it.
func (s *simulation) checkRequests() {
	for _, n := range s.nodes {
		waiting := slices.DeleteFunc(s.requestsFor(s.maintenances, n.Name), func(m *v1alpha1.NodeMaintenance) bool {
			return isAccepted(m) && !isTeams(m) // Its node is another one now.
		})
		if len(waiting) == 0 || len(cordon.Holders(n)) > 0 {
			continue
		}
		if !slices.ContainsFunc(s.budgets, func(b *v1alpha1.NodeBudget) bool { return namesWaiting(b, n.Name) }) {
			s.t.Errorf("%s waits for %s at the end, and no NodeBudget names it", waiting[0].Name, n.Name)
		}
	}
}

func namesWaiting(b *v1alpha1.NodeBudget, node string) bool {
	_, waiting, waits := strings.Cut(b.Status.Summary, "; waiting: ")
	return waits && b.Status.UnavailableCount > 0 && (strings.Contains(waiting, node+" (") || strings.Contains(waiting, " more"))
}
