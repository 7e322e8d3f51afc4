package rollout

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/labelindex"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// limited is a NodeMaintenance of a user in Cordon or Drain.
type limited struct {
	object   *v1alpha1.NodeMaintenance
	selector *maintenance.NodeSelector
	age      int // its place among all, the oldest first
}

// request is a node that a NodeMaintenance of a user selects, and that NodeBudgets have to admit.
type request struct {
	*node
	by *limited
}

func (b *nodeBudget) appliesToAll() bool {
	return b.object.Spec.AppliesTo == v1alpha1.NodeBudgetOfAll
}

// limiting returns the budgets that have to admit a node before a NodeMaintenance of a user takes it.
func (n *node) limiting() (limiting []*nodeBudget) {
	for _, b := range n.budgets {
		if b.appliesToAll() {
			limiting = append(limiting, b)
		}
	}
	return limiting
}

// observeRequests finds the nodes that NodeMaintenances of users have or wait for.
func (f *fleet) observeRequests() {
	if !slices.ContainsFunc(f.budgets, (*nodeBudget).appliesToAll) {
		return
	}
	all := f.limited()
	for _, n := range f.nodes {
		limiting := n.limiting()
		if len(limiting) == 0 || n.startedBy != "" || n.admitted != nil {
			continue
		}
		selecting := slices.DeleteFunc(all.Candidates(n.Labels, labelindex.Name(n.Name)), func(m *limited) bool { return !m.selector.Match(n.Node) })
		has := func(m *limited) bool { return slices.Contains(n.holders, m.object.Name) || m.isAdmitted(n, limiting) }
		switch at := slices.IndexFunc(selecting, has); {
		case at >= 0:
			n.admit(selecting[at].object)
		case len(selecting) > 0:
			f.requests = append(f.requests, request{n, selecting[0]})
		}
	}
	slices.SortStableFunc(f.requests, func(a, b request) int { return a.by.age - b.by.age })
}

// limited returns the NodeMaintenances that NodeBudgets can hold back, the oldest first.
func (f *fleet) limited() (all labelindex.Index[*limited]) {
	for age, object := range slices.SortedFunc(slices.Values(f.Maintenances), maintenance.CompareAge) {
		if !maintenance.Limited(object) {
			continue
		}
		if selector := maintenance.Selector(object); selector != nil {
			all.Put(&limited{object, selector, age}, labelindex.OfNodeSelector(object.Spec.NodeSelector)...)
		}
	}
	return all
}

// isAdmitted reports whether each of the budgets lists a NodeMaintenance for a node.
func (m *limited) isAdmitted(n *node, limiting []*nodeBudget) bool {
	return !slices.ContainsFunc(limiting, func(b *nodeBudget) bool { return b.listed[n.Name] != m.object.UID })
}

func (n *node) admit(m *v1alpha1.NodeMaintenance) {
	n.admitted = &v1alpha1.BudgetNode{Name: n.Name, NodeMaintenanceName: m.Name, NodeMaintenanceUID: m.UID}
}

// admit decides which nodes NodeMaintenances of users may take, those of the oldest first. They come
// before the nodes of rollouts, as a user waits for them.
func (f *fleet) admit() {
	for _, r := range f.requests {
		limiting := r.limiting()
		holds := func(b *nodeBudget) bool {
			return b.refusalOfWrite(r.node).reason != "" || b.limit.refusal(r.node).reason != ""
		}
		if held := slices.IndexFunc(limiting, holds); held >= 0 {
			limiting[held].waiting = append(limiting[held].waiting, r)
			continue
		}
		r.node.admit(r.by.object)
		for _, b := range r.budgets {
			b.add(r.node)
		}
	}
}

// Waiting returns the nodes of a NodeMaintenance in Drain, which need not exist, that wait for a
// NodeBudget, with the state of that budget.
func Waiting(s Snapshot, m *v1alpha1.NodeMaintenance) map[string]string {
	planned := m.DeepCopy()
	planned.UID, planned.CreationTimestamp = "planned", metav1.NewTime(s.Now)
	s.Maintenances = append(slices.DeleteFunc(slices.Clone(s.Maintenances), func(other *v1alpha1.NodeMaintenance) bool { return other.Name == m.Name }), planned)
	f := observe(&s)
	f.readBudgets()
	f.admit()
	waits := map[string]string{}
	selector := maintenance.Selector(planned)
	for _, b := range f.budgets {
		for _, r := range b.waiting {
			if selector != nil && selector.Match(r.Node) {
				waits[r.Name] = "NodeBudget " + b.object.Name + ": " + b.summary()
			}
		}
	}
	return waits
}

// waitingList names some of the nodes that wait, with their NodeMaintenances.
func waitingList(waiting []request) string {
	var names []string
	for _, r := range waiting[:min(len(waiting), maxNamed)] {
		names = append(names, fmt.Sprintf("%s (%s)", r.Name, r.by.object.Name))
	}
	text := strings.Join(names, ", ")
	if more := len(waiting) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
