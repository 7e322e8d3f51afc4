package rollout_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// Teams have NodeMaintenances over several nodes each, under few names, so that another one has the name
// of one that is gone. Some are those of a bridge.

func isTeams(m *v1alpha1.NodeMaintenance) bool { return strings.HasPrefix(m.Name, "team-") }

func (s *simulation) requestRandomly() {
	name := fmt.Sprintf("team-%d", s.random.IntN(4))
	switch m, at := find(s.maintenances, name); {
	case !s.chance(5) || at >= 0 && isLive(m):
		return
	case at >= 0:
		s.deleteMaintenance(name)
	}
	var names []string
	for range 2 + s.random.IntN(5) {
		names = append(names, pick(s, s.nodes).Name)
	}
	s.requestNodes(name, &corev1.NodeSelector{NodeSelectorTerms: terms(names)}, func(m *v1alpha1.NodeMaintenance) {
		if s.chance(15) {
			ofBridge(m)
		}
	})
}

// wants returns true if a NodeMaintenance names a node that it has not given back.
func wants(m *v1alpha1.NodeMaintenance, node string) bool {
	if slices.Contains(m.Spec.CompletedNodes, v1alpha1.NodeReference{Name: node}) {
		return false
	}
	return slices.ContainsFunc(m.Spec.NodeSelector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool { return term.MatchFields[0].Values[0] == node })
}

// workForTeam has a NodeMaintenance take its nodes, and give each back when it is done.
func (s *simulation) workForTeam(m *v1alpha1.NodeMaintenance, percent int) {
	if maintenance.Stage(m) == v1alpha1.StageComplete {
		if s.chance(percent) {
			s.finishRequest(m.Name)
		}
		return
	}
	left := 0
	for _, n := range slices.Clone(s.nodes) {
		switch taken := slices.Contains(cordon.Holders(n), m.Name); {
		case !wants(m, n.Name):
			continue
		case taken && !s.sticky[n.Name] && s.chance(percent):
			s.giveNodeBack(m.Name, n.Name)
			continue
		case !taken && s.chance(2*percent):
			s.takeForTeam(m, n.Name, percent)
		}
		left++
	}
	if left == 0 {
		s.complete(m.Name)
	}
}

func (s *simulation) takeForTeam(m *v1alpha1.NodeMaintenance, node string, percent int) {
	if s.isHeld(m, node, percent) {
		return
	}
	s.hold(node, m.Name, true)
	s.seen.shared++
	if !maintenance.Limited(m) {
		s.seen.exempt++
	}
}

// isBegun reports whether a budget lists a node for a user already.
func (o *oracle) isBegun(n *corev1.Node, limiting []*v1alpha1.NodeBudget) bool {
	return slices.ContainsFunc(o.requestsFor(o.view.Maintenances, n.Name), func(m *v1alpha1.NodeMaintenance) bool {
		return slices.ContainsFunc(limiting, func(b *v1alpha1.NodeBudget) bool { return lists(&b.Status, n.Name, m.UID) })
	})
}

// checkBegun checks that a node that some budgets list is listed by others only if all list it, and that
// at least one such node keeps its place.
func (o *oracle) checkBegun(d *rollout.Decision) {
	kept := len(o.begun) == 0
	for _, n := range o.view.Nodes {
		if !o.begun[n.Name] {
			continue
		}
		for _, m := range o.requestsFor(o.view.Maintenances, n.Name) {
			count, fresh := o.listing(d, n, m)
			kept = kept || count > 0
			if len(fresh) > 0 {
				o.checkCompleted(n, count, fresh)
			}
		}
	}
	if !kept {
		o.t.Errorf("none of %v keeps its place", o.begun)
	}
}

// checkCompleted checks that all budgets list a node, and that those that did not had room.
func (o *oracle) checkCompleted(n *corev1.Node, count int, fresh []*v1alpha1.NodeBudget) {
	if all := len(o.limiting(n)); count != all {
		o.t.Errorf("%d of %d NodeBudgets list %s, some since now", count, all, n.Name)
	}
	for _, b := range fresh {
		if reason := o.refuses(b, n); reason != "" {
			o.t.Errorf("NodeBudget %s admits %s too: %s", b.Name, n.Name, reason)
		}
	}
}

// listing returns how many budgets of a decision list a node, and those that did not before.
func (o *oracle) listing(d *rollout.Decision, n *corev1.Node, m *v1alpha1.NodeMaintenance) (count int, fresh []*v1alpha1.NodeBudget) {
	for i := range d.Budgets {
		b := &d.Budgets[i]
		if !lists(&b.Status, n.Name, m.UID) {
			continue
		}
		count++
		if !lists(&b.Budget.Status, n.Name, m.UID) {
			fresh = append(fresh, b.Budget)
		}
	}
	return count, fresh
}
