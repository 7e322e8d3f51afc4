package drainlock

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func (p *planner) isRefused(object types.UID) bool {
	_, refused := p.Refused[object]
	return refused
}

// refusal returns the obstacle of a budget that cannot be written: other locks are released so that
// no node waits for them.
func (p *planner) refusal(b v1alpha1.BudgetReference) (o obstacle, found bool) {
	one := p.budgets[b]
	if one.ours() || !p.isRefused(one.UID) {
		return obstacle{}, false
	}
	return obstacle{
		BudgetReference: b, kind: v1alpha1.BlockerPDBLocked, refused: true,
		message: sentence(fmt.Sprintf("%s cannot be locked: %s", named(b), p.Refused[one.UID])),
	}, true
}
