package rollout

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// nodeBudget is a NodeBudget and the nodes that it selects.
type nodeBudget struct {
	*limit
	object *v1alpha1.NodeBudget
	// nodes are all if the selector is invalid.
	nodes []*node
	// listed are the nodes in its status, with the UIDs of NodeMaintenances of users.
	listed map[string]types.UID
	// waiting are nodes of NodeMaintenances of users that it holds.
	waiting []request
	// invalid holds the fault of the spec, with which no node starts.
	invalid error
	// refused holds the error of the last write; empty if it succeeded.
	refused string
}

// observeLedgers has nodes count as started whose NodeMaintenance a budget names and nobody could
// read.
func (f *fleet) observeLedgers() {
	for _, budget := range f.Budgets {
		for _, entry := range budget.Status.Working {
			n := f.byName[entry.Name]
			switch {
			case n == nil || !f.Unknown[entry.NodeMaintenanceName]:
			case entry.NodeMaintenanceUID != "":
				n.admitted, n.pending = &entry, true
			default:
				n.mayBeStarted(cmp.Or(entry.NodeRolloutName, entry.NodeMaintenanceName), entry.NodeMaintenanceName)
			}
		}
	}
}

// mayBeStarted has a node count as started by a NodeMaintenance that could not be read.
func (n *node) mayBeStarted(by, as string) {
	if n.startedBy == "" {
		n.startedBy, n.startedAs = by, as
	}
}

// readBudgets determines which nodes count for which NodeBudget.
func (f *fleet) readBudgets() {
	if f.tooManyBudgets().reason != "" {
		return
	}
	all := make([]*nodeBudget, len(f.nodes)*len(f.Budgets))
	for i, n := range f.nodes {
		n.budgets = all[i*len(f.Budgets) : i*len(f.Budgets) : (i+1)*len(f.Budgets)]
	}
	for _, object := range sorted(f.Budgets, (*v1alpha1.NodeBudget).GetName) {
		if object.DeletionTimestamp == nil {
			f.budgets = append(f.budgets, f.readBudget(object))
		}
	}
	f.observeRequests()
	for _, b := range f.budgets {
		for _, n := range b.nodes {
			if n.unavailable() {
				b.add(n)
			}
		}
	}
}

// tooManyBudgets returns why no node starts while NodeBudgets are not read.
func (f *fleet) tooManyBudgets() refusal {
	if text := nodebudget.TooMany(len(f.Budgets)); text != "" {
		return refusal{v1alpha1.RolloutWaitsForNodeBudget, text}
	}
	return refusal{}
}

func (f *fleet) readBudget(object *v1alpha1.NodeBudget) *nodeBudget {
	b := &nodeBudget{object: object, refused: f.RefusedBudgets[object.Name], listed: nodebudget.Admitted(object)}
	selector, err := readSelector(object.Spec.NodeSelector)
	for _, n := range f.nodes {
		if err != nil || selector.Match(n.Node) {
			b.nodes = append(b.nodes, n)
			n.budgets = append(n.budgets, b)
		}
	}
	most, invalid := share(object.Spec.MaxUnavailable, len(b.nodes))
	if invalid != nil {
		invalid = fmt.Errorf("spec.maxUnavailable: %w", invalid)
	}
	b.invalid = cmp.Or(err, invalid)
	b.limit = newLimit("NodeBudget "+object.Name+". ", min(most, maxStarted), object.Spec.TopologyKey)
	return b
}

// refusalByNodeBudgets returns why a NodeBudget does not let a node start.
func (u *unit) refusalByNodeBudgets() refusal {
	for _, b := range u.budgets {
		if refused := b.refusal(u.node); refused.reason != "" {
			u.heldBy = b.object.Name
			return refusal{v1alpha1.RolloutWaitsForNodeBudget, refused.message}
		}
	}
	return refusal{}
}

// refusal returns why a node must not start.
func (b *nodeBudget) refusal(n *node) refusal {
	if refused := b.refusalOfWrite(n); refused.reason != "" {
		return refused
	}
	if refused := b.limit.refusal(n); refused.reason != "" {
		return refused
	}
	// A node that is listed starts only when it is no longer there, so that the write before the start
	// has an effect: a second manager gets a conflict.
	if _, listed := b.listed[n.Name]; !listed {
		return refusal{}
	}
	return refusal{v1alpha1.RolloutWaitsForNodeBudget, b.of + "The last maintenance is being removed from its status."}
}

// refusalOfWrite returns why the budget admits no node.
func (b *nodeBudget) refusalOfWrite(n *node) refusal {
	switch {
	case b.invalid != nil:
		return b.refuse(n, v1alpha1.ReasonInvalidSpec, b.invalidText)
	case b.refused != "":
		return b.refuse(n, v1alpha1.RolloutWaitsForWrite, func() string { return "Its status could not be written: " + excerpt.Line(b.refused, maxText) })
	}
	return refusal{}
}

func (b *nodeBudget) invalidText() string {
	return "Invalid: " + excerpt.Line(b.invalid.Error(), maxText)
}

// countInNodeBudgets counts a node that starts.
func (u *unit) countInNodeBudgets() {
	for _, b := range u.budgets {
		b.add(u.node)
		u.rollout.counted.Insert(b.object.Name)
	}
}

// status returns the new status of a NodeBudget.
func (b *nodeBudget) status() v1alpha1.NodeBudgetStatus {
	status := v1alpha1.NodeBudgetStatus{
		ObservedGeneration: b.object.Generation, NodeCount: int32(len(b.nodes)), UnavailableCount: int32(len(b.unavailable)),
	}
	if status.Summary = b.summary(); b.invalid != nil {
		status.NodeCount, status.UnavailableCount = 0, 0
	}
	// With more of them none starts, also where a cache has none of their NodeMaintenances.
	for _, n := range b.nodes {
		switch {
		case len(status.Working) == maxStarted:
			return status
		case n.startedAs != "":
			status.Working = append(status.Working, v1alpha1.BudgetNode{Name: n.Name, NodeMaintenanceName: n.startedAs, NodeRolloutName: n.startedBy})
		case n.admitted != nil && b.appliesToAll() && (!n.pending || b.lists(n, n.admitted.NodeMaintenanceUID)):
			status.Working = append(status.Working, *n.admitted)
		}
	}
	return status
}

func (b *nodeBudget) summary() string {
	if b.invalid != nil {
		return b.invalidText()
	}
	text := fmt.Sprintf("%d of %s unavailable, at most %d may be", len(b.unavailable), phrase.Count(len(b.nodes), "node"), b.maxUnavailable)
	b.named = nil // Those that have just started come last there.
	for _, n := range b.nodes {
		if b.unavailable[n] && len(b.named) < maxNamed {
			b.named = append(b.named, n)
		}
	}
	if len(b.named) > 0 {
		text += ": " + b.list(nil, len(b.unavailable))
	}
	if len(b.waiting) > 0 {
		text += "; waiting: " + waitingList(b.waiting)
	}
	return text
}
