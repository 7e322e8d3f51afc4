package maintenance_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// admissions simulates NodeBudgets that hold nodes. It has dice of its own.
type admissions struct {
	random *rand.Rand
	// limits is true if there are budgets.
	limits bool
}

func newAdmissions(seed uint64) admissions {
	return admissions{random: rand.New(rand.NewPCG(seed, 92)), limits: seed%3 == 0}
}

func (a *admissions) chance(percent int) bool { return a.random.IntN(100) < percent }

// changeNodeBudgets adds, changes and deletes budgets, admits nodes, and makes maintenances exempt.
func (s *simulation) changeNodeBudgets() {
	a := &s.admissions
	if !a.limits {
		return
	}
	s.unread = a.chance(5)
	s.changeBudgets()
	s.exempt()
	if len(s.maintenances) > 0 && a.chance(30) {
		m := s.maintenances[a.random.IntN(len(s.maintenances))]
		for _, node := range s.selectedBy(m) {
			s.admit(node, m)
		}
	}
}

func (s *simulation) changeBudgets() {
	a := &s.admissions
	switch {
	case a.chance(10) && len(s.nodeBudgets) < 3:
		var nodes []string
		for _, node := range s.nodes {
			if a.chance(60) {
				nodes = append(nodes, node.Name)
			}
		}
		s.limit(fmt.Sprintf("b-%d", a.random.IntN(100)), nodes...)
	case a.chance(3) && len(s.nodeBudgets) > 0:
		s.nodeBudgets = s.nodeBudgets[1:]
	}
	for _, b := range s.nodeBudgets {
		b.Status.Working = slices.DeleteFunc(b.Status.Working, func(v1alpha1.BudgetNode) bool { return a.chance(10) })
	}
}

// exempt makes new maintenances those of a rollout.
func (s *simulation) exempt() {
	for _, m := range s.maintenances {
		if len(m.Labels) == 0 && len(m.Status.StageStatuses) == 0 && s.admissions.chance(20) {
			m.Labels = map[string]string{v1alpha1.RolloutLabel: "patch"}
		}
	}
}

// admit lists a node for a maintenance in all budgets.
func (s *simulation) admit(node string, m *v1alpha1.NodeMaintenance) {
	for _, b := range s.nodeBudgets {
		b.Status.Working = slices.DeleteFunc(b.Status.Working, func(entry v1alpha1.BudgetNode) bool { return entry.Name == node })
		admit(b, m, node)
	}
}

// admitAll lists each node for a maintenance that waits for it. Then nothing is held.
func (s *simulation) admitAll() {
	s.unread = false
	for _, m := range s.maintenances {
		for _, node := range s.selectedBy(m) {
			if s.limitedOn(node, m) {
				s.admit(node, m)
			}
		}
	}
}

// limitedOn returns true if a maintenance cordons a node and budgets can keep it from that.
func (s *simulation) limitedOn(node string, m *v1alpha1.NodeMaintenance) bool {
	cordons := m.DeletionTimestamp == nil && (m.Spec.Stage == v1alpha1.StageCordon || m.Spec.Stage == v1alpha1.StageDrain)
	return cordons && m.Labels[v1alpha1.RolloutLabel] == "" && slices.Contains(s.selectedBy(m), node)
}

// held returns true if budgets keep those maintenances from a node that they can keep from it.
func (s *simulation) held(name string) bool {
	switch {
	case len(cordon.Holders(s.find(name))) > 0 || !slices.ContainsFunc(s.maintenances, func(m *v1alpha1.NodeMaintenance) bool { return s.limitedOn(name, m) }):
		return false
	case s.unread:
		return true
	}
	for _, b := range s.nodeBudgets {
		selects := slices.ContainsFunc(b.Spec.NodeSelector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool { return term.MatchFields[0].Values[0] == name })
		admits := slices.ContainsFunc(b.Status.Working, func(entry v1alpha1.BudgetNode) bool {
			return entry.Name == name && slices.ContainsFunc(s.maintenances, func(m *v1alpha1.NodeMaintenance) bool {
				return m.UID == entry.NodeMaintenanceUID && s.limitedOn(name, m)
			})
		})
		if selects && !admits {
			return true
		}
	}
	return false
}

// unheld are the statuses of the nodes that wait for no budget.
func (s *simulation) unheld(d *maintenance.MaintenanceDecision) map[string]*v1alpha1.NodeMaintenanceNodeStatus {
	all := map[string]*v1alpha1.NodeMaintenanceNodeStatus{}
	for i := range d.Status.NodeStatuses {
		if name := d.Status.NodeStatuses[i].NodeRef.Name; !s.limitedOn(name, d.Maintenance) || !s.held(name) {
			all[name] = &d.Status.NodeStatuses[i]
		}
	}
	return all
}

// checkHeld: nothing is done to a held node, unless a maintenance has it that no budget holds.
func (s *simulation) checkHeld(decision maintenance.Decision) {
	var held []string
	for _, node := range s.nodes {
		if s.held(node.Name) {
			held = append(held, node.Name)
		}
	}
	slices.Sort(held)
	if waiting := decision.Waiting; !slices.Equal(waiting, held) {
		s.t.Errorf("waiting are %v, want %v", waiting, held)
	}
	heldInSimulations += len(held)
	for _, d := range decision.Maintenances {
		waits := slices.ContainsFunc(held, func(node string) bool { return s.limitedOn(node, d.Maintenance) })
		if waits && isTrue(d.Status.Conditions, v1alpha1.ConditionDrained) {
			s.t.Errorf("%s is Drained although one of %v waits", d.Maintenance.Name, held)
		}
	}
	for i := range decision.Nodes {
		if d := &decision.Nodes[i]; slices.Contains(held, d.Node.Name) {
			s.checkUntouched(d)
		}
	}
}

func (s *simulation) checkUntouched(d *maintenance.NodeDecision) {
	exempt := slices.ContainsFunc(s.maintenances, func(m *v1alpha1.NodeMaintenance) bool {
		return m.Labels[v1alpha1.RolloutLabel] != "" && slices.Contains(s.selectedBy(m), d.Node.Name)
	})
	cordons := d.Cordon != nil && len(cordon.ReadLedger(d.Cordon.Ledger).Holders) > 0
	records := d.DrainRecord != nil && !d.DrainRecord.Spec.Complete // One of an earlier maintenance may end.
	if !exempt && (cordons || records || len(d.Evacuate)+len(d.Delete) > 0) {
		s.t.Errorf("node %s is held and touched: %+v", d.Node.Name, d)
	}
}

// heldInSimulations counts nodes that are held, over all passes.
var heldInSimulations int
