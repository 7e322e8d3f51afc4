package maintenance

import (
	"cmp"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/maintenance/drainrecord"
)

// claim is a pod that asks to stay under budgets.
type claim struct {
	*pod
	// recorded is true if the record of the node names it already.
	recorded bool
	budgets  []*policyv1.PodDisruptionBudget
}

// surplus has those pods leave like any other that ask to stay under more budgets
// than the record of the node can name. Where the node has too many, those stay that
// its record names already, and then those under the fewest budgets: whoever gives
// pods many budgets is not to drive those of others away.
func (r *reader) surplus(n *node) {
	if !r.mayBeSurplus(n) {
		return
	}
	named, pods := map[v1alpha1.BudgetReference]bool{}, 0
	for _, c := range r.claims(n) {
		if pods == drainlock.MaxPods || len(named)+c.beyond(named) > drainlock.MaxBudgets {
			c.leaves(fmt.Sprintf("more pods ask to stay there than the %d pods under %d PodDisruptionBudgets for which a node can have locks.",
				drainlock.MaxPods, drainlock.MaxBudgets))
			continue
		}
		pods++
		for _, b := range c.budgets {
			named[drainlock.ReferenceTo(b)] = true
		}
	}
}

// claims are the pods that may stay under budgets as far as these are concerned, the
// first to be granted first.
func (r *reader) claims(n *node) []claim {
	var claims []claim
	recorded := n.recorded()
	for i := range n.pods {
		p := &n.pods[i]
		if p.staying == nil {
			continue
		}
		if protecting := r.budgets.applying(p.object); len(protecting) > drainlock.MaxBudgetsOfPod {
			p.leaves(fmt.Sprintf("it is under %d PodDisruptionBudgets, and a pod under more than %d is not kept. Let fewer budgets select it.",
				len(protecting), drainlock.MaxBudgetsOfPod))
		} else if len(protecting) > 0 {
			claims = append(claims, claim{p, recorded[p.object.UID], protecting})
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(ones(b.recorded)-ones(a.recorded), cmp.Compare(len(a.budgets), len(b.budgets)), comparePods(a.object, b.object))
	})
	return claims
}

// beyond is how many budgets of the claim are not among these.
func (c claim) beyond(named map[v1alpha1.BudgetReference]bool) int {
	more := 0
	for _, b := range c.budgets {
		more += ones(!named[drainlock.ReferenceTo(b)])
	}
	return more
}

// leaves has a pod that asks to stay leave.
func (p *pod) leaves(why string) { p.staying, p.surplus = nil, why }

// mayBeSurplus is false where nobody need look at the budgets of each pod.
func (r *reader) mayBeSurplus(n *node) bool {
	budgets, pods, seen := 0, 0, map[string]bool{}
	for i := range n.pods {
		p := &n.pods[i]
		if p.staying == nil {
			continue
		}
		pods++
		if namespace := p.object.Namespace; !seen[namespace] {
			seen[namespace] = true
			budgets += len(r.Budgets[namespace])
		}
	}
	return pods > drainlock.MaxPods || budgets > drainlock.MaxBudgetsOfPod
}

// recorded are the pods that the record of the drain names.
func (n *node) recorded() map[types.UID]bool {
	recorded := map[types.UID]bool{}
	if drainrecord.InForce(n.object, n.record) {
		for _, pod := range n.record.Spec.Pods {
			recorded[pod.UID] = true
		}
	}
	return recorded
}
