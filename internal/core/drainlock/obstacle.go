package drainlock

import (
	"fmt"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// obstacle is why a budget cannot be locked now.
type obstacle struct {
	v1alpha1.BudgetReference
	kind                v1alpha1.BlockerType
	message, suggestion string
	// turn is true if it is the lock of another drain, locked if it is anybody's.
	turn, locked bool
	// away is true if another node holds the budget by its promise.
	away bool
	// refused is true if the budget cannot be written.
	refused bool
	// ends is when it ends by itself; zero if nobody knows.
	ends time.Time
}

// obstacle returns what is in the way of the lock of a budget that exists, if
// anything is. A pod that is not ready costs the budget nothing, but as with the
// eviction API it may only go while the budget has all the healthy pods it wants,
// or does not care: it may get ready again before the node goes.
func (v *view) obstacle(b v1alpha1.BudgetReference) (o obstacle, found bool) {
	one := v.budgets[b]
	o.BudgetReference = b
	if one.locked && !one.own {
		o.kind, o.ends, o.locked = v1alpha1.BlockerPDBLocked, one.hold.Ends, true
		_, _, o.turn = one.hold.Drain()
		o.message, o.suggestion = sentence(one.hold.Describe(one.PodDisruptionBudget)), v.unlock(one)
		return o, true
	}
	o.kind = v1alpha1.BlockerPDBExhausted
	needed, dormant := v.cost(b)
	allowed, known := budget.Allowed(one.PodDisruptionBudget)
	status := one.Status
	switch {
	case !known:
		o.message = fmt.Sprintf("What %s allows is unknown: its status is older than its spec.", named(b))
		o.suggestion = command.Of("If it stays so, the disruption controller does not run. See the budget: kubectl -n %s describe poddisruptionbudget %s", b.Namespace, b.Name)
	case allowed < needed:
		v.explain(&o, needed, allowed)
	case dormant && needed == 0 && status.CurrentHealthy < status.DesiredHealthy && !budget.LetsUnreadyGo(one.PodDisruptionBudget):
		o.message = fmt.Sprintf("%s needs %s and has %d, and those that stay are not ready.", named(b), phrase.Count(status.DesiredHealthy, "healthy pod"), status.CurrentHealthy)
		o.suggestion = blocker.SeePods(one.PodDisruptionBudget)
	default:
		return obstacle{}, false
	}
	return o, true
}

// explain says why a budget does not allow what is needed, and whether it ever will.
func (v *view) explain(o *obstacle, needed, allowed int32) {
	b := v.budgets[o.BudgetReference].PodDisruptionBudget
	why, never := budget.Never(b)
	most := b.Status.ExpectedPods - b.Status.DesiredHealthy
	switch {
	case never:
		o.message = fmt.Sprintf("%s can never allow a disruption: %s.", named(o.BudgetReference), why)
	case b.Status.ExpectedPods > 0 && most < needed:
		never = true
		o.message = fmt.Sprintf("%s can never allow the %s that the pods that stay need: %d of its %d pods have to be healthy.",
			named(o.BudgetReference), phrase.Count(needed, "disruption"), b.Status.DesiredHealthy, b.Status.ExpectedPods)
	default:
		o.message = fmt.Sprintf("%s has to allow %s for the pods that stay, and allows %d.", named(o.BudgetReference), phrase.Count(needed, "disruption"), allowed)
		o.suggestion = blocker.SeePods(b)
	}
	if never {
		o.kind, o.suggestion = v1alpha1.BlockerPDBUnsatisfiable, loosen(b, needed)
	}
}

// unlock says how somebody else's lock goes.
func (v *view) unlock(one sight) string {
	if maintenance, node, drain := one.hold.Drain(); drain && maintenance == v.record.Spec.MaintenanceRef.Name {
		if v.expectedReboots() == 0 {
			return command.Of("Node %[1]s is of the same NodeMaintenance. When it is back, say so: kubectl annotate drainrecord %[1]s %s=true", node, v1alpha1.BackAnnotation)
		}
		return command.Of("Node %s is of the same NodeMaintenance, and gives its locks to the next when it has rebooted and its pods are ready. "+
			"What it waits for: kubectl describe drainrecord %[1]s", node)
	}
	return blocker.Unlock(one.PodDisruptionBudget, one.hold)
}

// loosen is the smallest change of a budget that lets the pods stay.
func loosen(b *policyv1.PodDisruptionBudget, needed int32) string {
	patch, what := fmt.Sprintf(`{"spec":{"minAvailable":null,"maxUnavailable":%d}}`, needed), "Let "+phrase.Count(needed, "pod")+" be unavailable"
	if b.Status.ExpectedPods == 0 {
		patch, what = `{"spec":{"minAvailable":0,"maxUnavailable":null}}`, "Give the pods a controller, or count pods"
	}
	return what + ": " + command.Of("kubectl -n %s patch poddisruptionbudget %s --type=merge -p %s", b.Namespace, b.Name, command.Quote(patch))
}

func named(b v1alpha1.BudgetReference) string {
	return fmt.Sprintf("PodDisruptionBudget %s/%s", b.Namespace, b.Name)
}

// longestText is how much of somebody else's words is repeated.
const longestText = 800

// maxMessage is how many characters a message in a record has.
const maxMessage = 1024

func sentence(text string) string {
	return strings.TrimRight(excerpt.Of(text, longestText), ". ") + "."
}
