package rollout

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// begun is true if some of the budgets list the node already.
	begun bool
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
		f.observeRequest(n, limiting, selecting)
	}
	place := func(r request) int {
		if r.begun {
			return r.by.age
		}
		return len(f.Maintenances) + r.by.age
	}
	slices.SortStableFunc(f.requests, func(a, b request) int { return place(a) - place(b) })
}

// observeRequest determines what NodeMaintenances of users have of a node. What a budget lists stays
// and counts everywhere until all list it: a manager that has seen it in all may cordon the node.
func (f *fleet) observeRequest(n *node, limiting []*nodeBudget, selecting []*limited) {
	listing := func(m *limited) (count int) {
		for _, b := range limiting {
			if b.lists(n, m.object.UID) {
				count++
			}
		}
		return count
	}
	has := slices.IndexFunc(selecting, func(m *limited) bool {
		return slices.Contains(n.holders, m.object.Name) || listing(m) == len(limiting)
	})
	begun := slices.IndexFunc(selecting, func(m *limited) bool { return listing(m) > 0 })
	switch {
	case has >= 0:
		n.admit(selecting[has].object)
	case begun >= 0:
		n.admit(selecting[begun].object)
		n.pending = true
		f.requests = append(f.requests, request{n, selecting[begun], true})
	case len(selecting) > 0:
		f.requests = append(f.requests, request{n, selecting[0], false})
	}
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

func (b *nodeBudget) lists(n *node, uid types.UID) bool { return b.listed[n.Name] == uid }

func (n *node) admit(m *v1alpha1.NodeMaintenance) {
	n.admitted = &v1alpha1.BudgetNode{Name: n.Name, NodeMaintenanceName: m.Name, NodeMaintenanceUID: m.UID}
}

// admit decides which nodes NodeMaintenances of users may take, those of the oldest first. They come
// before the nodes of rollouts, as a user waits for them.
func (f *fleet) admit() {
	waits := false
	for _, r := range f.requests {
		limiting := r.limiting()
		if held := slices.IndexFunc(limiting, r.isHeldBy); held >= 0 {
			limiting[held].waiting = append(limiting[held].waiting, r)
			if r.begun && waits {
				r.drop(limiting) // Two could wait for each other.
			}
			waits = waits || r.begun
			continue
		}
		r.node.admit(r.by.object)
		r.pending = false
		for _, b := range r.budgets {
			b.add(r.node)
		}
	}
}

// drop removes the node from the budgets that list it. It counts until the next decision.
func (r request) drop(from []*nodeBudget) {
	for _, b := range from {
		delete(b.listed, r.Name)
	}
}

// isHeldBy reports whether a budget does not admit the node.
func (r request) isHeldBy(b *nodeBudget) bool {
	if b.lists(r.node, r.by.object.UID) {
		return false
	}
	return b.refusalOfWrite(r.node).reason != "" || b.limit.refusal(r.node).reason != ""
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
	if selector == nil {
		return waits
	}
	for _, b := range f.budgets {
		all := b.waiting
		b.waiting = slices.DeleteFunc(slices.Clone(all), func(r request) bool { return r.by.object == planned })
		text := "NodeBudget " + b.object.Name + ": " + b.summary()
		for _, r := range all {
			if selector.Match(r.Node) {
				waits[r.Name] = text
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
	return listOf(names, len(waiting))
}
