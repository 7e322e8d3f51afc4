package rollout_test

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

const maxSimulatedBudgets = 4

// limitRandomly creates a NodeBudget.
func (s *simulation) limitRandomly() {
	s.limitTo(fmt.Sprintf("b%d", s.born), func(spec *v1alpha1.NodeBudgetSpec) {
		spec.NodeSelector, spec.MaxUnavailable = s.someSelector(), s.someShare(5)
		if s.chance(25) {
			spec.TopologyKey = zoneLabel
		}
		if s.chance(50) {
			spec.AppliesTo = v1alpha1.NodeBudgetOfAll
		}
	})
}

// happenToBudgets has people change NodeBudgets, and writes of them fail.
func (s *simulation) happenToBudgets() {
	clear(s.refusedBudgets)
	if len(s.budgets) < maxSimulatedBudgets && s.chance(3) {
		s.limitRandomly()
	}
	if len(s.budgets) == 0 {
		return
	}
	name := pick(s, s.budgets).Name
	switch s.random.IntN(60) {
	case 0:
		s.deleteBudget(name)
	case 1, 2:
		s.editBudget(name, func(b *v1alpha1.NodeBudget) { b.Spec.MaxUnavailable = s.someShare(5) })
	case 3:
		s.editBudget(name, func(b *v1alpha1.NodeBudget) { b.Spec.NodeSelector = s.someSelector() })
	case 4:
		s.editBudget(name, func(b *v1alpha1.NodeBudget) { b.Spec.MaxUnavailable = new(intstr.FromString("none")) })
	case 5:
		s.editBudget(name, func(b *v1alpha1.NodeBudget) { b.Spec.NodeSelector = nil })
	case 8:
		s.editBudget(name, func(b *v1alpha1.NodeBudget) {
			b.Spec.AppliesTo = pick(s, []v1alpha1.NodeBudgetScope{v1alpha1.NodeBudgetOfAll, v1alpha1.NodeBudgetOfRollouts})
		})
	case 6, 7:
		s.refusedBudgets[name] = "forbidden by a test"
	}
	if s.chance(30) {
		s.makeBudgetsValid()
	}
}

func (s *simulation) makeBudgetsValid() {
	for _, b := range slices.Clone(s.budgets) {
		if !isValid(b) {
			s.editBudget(b.Name, func(b *v1alpha1.NodeBudget) {
				b.Spec.NodeSelector, b.Spec.MaxUnavailable = pool("a"), new(intstr.FromInt32(2))
			})
		}
	}
}

func isValid(b *v1alpha1.NodeBudget) bool {
	return b.Spec.NodeSelector != nil && b.Spec.MaxUnavailable.StrVal != "none"
}

// recorded returns the names of the NodeMaintenances that rollouts and budgets have recorded.
func (s *simulation) recorded() []string {
	names := map[string]bool{}
	for _, r := range s.rollouts {
		for _, entry := range r.Status.Working {
			names[entry.NodeMaintenanceName] = entry.NodeMaintenanceName != ""
		}
	}
	for _, b := range s.budgets {
		for _, entry := range b.Status.Working {
			names[entry.NodeMaintenanceName] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// observeLedgers notes the nodes whose NodeMaintenance a budget names and nobody could read.
func (o *oracle) observeLedgers() {
	for _, b := range o.view.Budgets {
		for _, entry := range b.Status.Working {
			switch {
			case !o.view.Unknown[entry.NodeMaintenanceName]:
			case entry.NodeMaintenanceUID != "":
				o.admitted[entry.Name], o.unread[entry.Name] = true, true
			default:
				o.unknown[entry.Name] = true
			}
		}
	}
}

// selectedBy returns the nodes of a budget: all if nobody knows which.
func (o *oracle) selectedBy(b *v1alpha1.NodeBudget) (nodes []*corev1.Node) {
	if b.Spec.NodeSelector == nil {
		return o.view.Nodes
	}
	if nodes, known := o.selected[b]; known {
		return nodes
	}
	defer func() {
		if o.selected == nil {
			o.selected = map[*v1alpha1.NodeBudget][]*corev1.Node{}
		}
		o.selected[b] = nodes
	}()
	selector, err := nodeaffinity.NewNodeSelector(b.Spec.NodeSelector)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, n := range o.view.Nodes {
		if selector.Match(n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func has(nodes []*corev1.Node, name string) bool {
	return slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })
}

// checkBudgets checks that each NodeBudget that selects a node admits its start.
func (o *oracle) checkBudgets(d *rollout.RolloutDecision, m *v1alpha1.NodeMaintenance) {
	name := nodeOf(m)
	for _, b := range o.view.Budgets {
		nodes := o.selectedBy(b)
		if !has(nodes, name) {
			continue
		}
		o.seen.budgeted++
		if !isValid(b) || o.view.RefusedBudgets[b.Name] != "" || o.unknown[name] || !slices.Contains(d.Budgets, b.Name) {
			o.t.Errorf("%s starts %s under NodeBudget %s, valid %v, refused %q, unknown %v, counted by %v",
				d.Rollout.Name, name, b.Name, isValid(b), o.view.RefusedBudgets[b.Name], o.unknown[name], d.Budgets)
			continue
		}
		others, domains := o.beside(name, nodes, b.Spec.TopologyKey)
		if most := portion(b.Spec.MaxUnavailable, len(nodes)); others >= most || b.Spec.TopologyKey != "" && domains > 1 {
			o.t.Errorf("%s starts %s beside %d of %d nodes in %d domains, NodeBudget %s allows %d",
				d.Rollout.Name, name, others, len(nodes), domains, b.Name, most)
		}
	}
}

// beside returns the number of the other nodes that are unavailable, and of the domains of all of them.
func (o *oracle) beside(name string, nodes []*corev1.Node, key string) (others, domains int) {
	in := map[string]bool{}
	for _, n := range nodes {
		unavailable := n.Name != name && o.isUnavailable(n)
		if unavailable || n.Name == name {
			in[n.Labels[key]] = true
		}
		if unavailable {
			others++
		}
	}
	return others, len(in)
}

// checkLedgers checks what budgets report.
func (o *oracle) checkLedgers(d *rollout.Decision) {
	for i := range d.Budgets {
		b, status := d.Budgets[i].Budget, &d.Budgets[i].Status
		if !isValid(b) {
			continue
		}
		unavailable, working := o.stateOf(b)
		var listed []string
		for _, entry := range status.Working {
			if o.begun[entry.Name] || o.unread[entry.Name] && !lists(&b.Status, entry.Name, entry.NodeMaintenanceUID) {
				continue
			}
			listed = append(listed, entry.Name)
		}
		if status.UnavailableCount != unavailable || !slices.Equal(working, listed) {
			o.t.Errorf("NodeBudget %s has %d unavailable nodes and %v under maintenance, want %d and %v", b.Name, status.UnavailableCount, listed, unavailable, working)
		}
	}
}

// stateOf returns how many nodes of a budget are unavailable, and which it lists.
func (o *oracle) stateOf(b *v1alpha1.NodeBudget) (unavailable int32, working []string) {
	for _, n := range o.selectedBy(b) {
		if o.isUnavailable(n) {
			unavailable++
		}
		if o.isStarted(n) || o.keeps(b, n.Name) {
			working = append(working, n.Name)
		}
	}
	slices.Sort(working)
	return unavailable, working
}

// keeps reports whether a budget has to list a node for a user: one that could not be read where it was
// listed, others everywhere. Those that only some list are left to checkBegun.
func (o *oracle) keeps(b *v1alpha1.NodeBudget, node string) bool {
	if b.Spec.AppliesTo != v1alpha1.NodeBudgetOfAll || !o.admitted[node] || o.begun[node] {
		return false
	}
	return !o.unread[node] || slices.ContainsFunc(b.Status.Working, func(entry v1alpha1.BudgetNode) bool {
		return entry.Name == node && entry.NodeMaintenanceUID != ""
	})
}

// checkTruth checks by what the API server has that no start of a decision has exceeded a budget,
// although the manager may not have seen all of it.
func (s *simulation) checkTruth(view *rollout.Snapshot, d *rollout.Decision) {
	under := map[string]string{}
	for _, m := range s.maintenances {
		if m.Labels[v1alpha1.RolloutLabel] != "" && isLive(m) {
			under[nodeOf(m)] = m.Name
		}
	}
	o := &oracle{simulation: s, view: view}
	for i := range d.Rollouts {
		for _, m := range d.Rollouts[i].Starts {
			n, _ := find(view.Nodes, nodeOf(m))
			if under[n.Name] == m.Name && isReady(n) && !n.Spec.Unschedulable {
				o.checkTruthOf(n.Name, under)
			}
		}
	}
}

func (o *oracle) checkTruthOf(started string, under map[string]string) {
	for _, b := range o.view.Budgets {
		nodes := o.selectedBy(b)
		if !has(nodes, started) {
			continue
		}
		count := 0
		for _, n := range nodes {
			if under[n.Name] != "" {
				count++
			}
		}
		if most := portion(b.Spec.MaxUnavailable, len(nodes)); count > most {
			o.t.Errorf("%s was started, and %d of %d nodes are under maintenance, NodeBudget %s allows %d", started, count, len(nodes), b.Name, most)
		}
	}
}
