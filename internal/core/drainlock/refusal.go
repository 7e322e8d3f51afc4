package drainlock

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// refused is true of an object that lately could not be written. It is left alone
// for now, and what else is to be done goes on.
func (p *pass) refused(object types.UID) bool {
	_, refused := p.Refused[object]
	return refused
}

// refusal is in the way of a lock that could not be written: the others are given
// back, as with any obstacle, so that nobody waits for a budget that is not needed.
func (p *pass) refusal(b v1alpha1.BudgetReference) (o obstacle, found bool) {
	one := p.budgets[b]
	if one.ours() || !p.refused(one.UID) {
		return obstacle{}, false
	}
	return obstacle{
		BudgetReference: b, kind: v1alpha1.BlockerPDBLocked, refused: true,
		message: sentence(fmt.Sprintf("%s cannot be locked, because it cannot be written: %s", named(b), p.Refused[one.UID])),
	}, true
}
