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

// obstacle is the reason why a budget cannot be locked now.
type obstacle struct {
	v1alpha1.BudgetReference
	kind                v1alpha1.BlockerType
	message, suggestion string
	ofDrain, locked     bool
	// away is true if another node protects the budget by its promise.
	away bool
	// refused is true if the budget cannot be written.
	refused bool
	// ends is the time of its end; zero if unknown.
	ends time.Time
}

// obstacle returns what prevents the lock of an existing budget. As in the eviction API, a pod that
// is not ready may only go while the budget has all the healthy pods it wants or has policy
// AlwaysAllow, because it may become ready before the node goes.
func (v *view) obstacle(b v1alpha1.BudgetReference) (o obstacle, found bool) {
	one := v.budgets[b]
	o.BudgetReference = b
	if one.locked && !one.own {
		o.kind, o.ends, o.locked = v1alpha1.BlockerPDBLocked, one.lock.Ends, true
		_, _, o.ofDrain = one.lock.Drain()
		o.message, o.suggestion = sentence(one.lock.Describe(one.PodDisruptionBudget)), v.unlock(one)
		return o, true
	}
	o.kind = v1alpha1.BlockerPDBExhausted
	needed, dormant := v.cost(b)
	allowed, known := budget.Allowed(one.PodDisruptionBudget)
	status := one.Status
	switch {
	case !known:
		o.message = fmt.Sprintf("The disruptions that %s allows are unknown because its status is outdated.", named(b))
		o.suggestion = command.Of("If this persists, check the disruption controller: kubectl -n %s describe poddisruptionbudget %s", b.Namespace, b.Name)
	case allowed < needed:
		v.explain(&o, needed, allowed)
	case dormant && needed == 0 && status.CurrentHealthy < status.DesiredHealthy && !budget.LetsUnreadyGo(one.PodDisruptionBudget):
		o.message = fmt.Sprintf("%s requires %s and has %d, and the pods that stay are not ready.", named(b), phrase.Count(status.DesiredHealthy, "healthy pod"), status.CurrentHealthy)
		o.suggestion = blocker.SeePods(one.PodDisruptionBudget)
	default:
		return obstacle{}, false
	}
	return o, true
}

// explain sets the message for a budget that allows too little, now or ever.
func (v *view) explain(o *obstacle, needed, allowed int32) {
	b := v.budgets[o.BudgetReference].PodDisruptionBudget
	why, never := budget.Never(b)
	most := b.Status.ExpectedPods - b.Status.DesiredHealthy
	switch {
	case never:
		o.message = fmt.Sprintf("%s can never allow a disruption: %s.", named(o.BudgetReference), why)
	case b.Status.ExpectedPods > 0 && most < needed:
		never = true
		o.message = fmt.Sprintf("%s can never allow the %s required by the pods that stay because %d of its %d pods must be healthy.",
			named(o.BudgetReference), phrase.Count(needed, "disruption"), b.Status.DesiredHealthy, b.Status.ExpectedPods)
	default:
		o.message = fmt.Sprintf("%s allows %d of the %s required by the pods that stay.", named(o.BudgetReference), allowed, phrase.Count(needed, "disruption"))
		o.suggestion = blocker.SeePods(b)
	}
	if never {
		o.kind, o.suggestion = v1alpha1.BlockerPDBUnsatisfiable, loosen(b, needed)
	}
}

func (v *view) unlock(one observedBudget) string {
	if maintenance, node, drain := one.lock.Drain(); drain && maintenance == v.record.Spec.MaintenanceRef.Name {
		if v.expectedReboots() == 0 {
			return command.Of("Node %[1]s has the same NodeMaintenance. When it is back: kubectl annotate drainrecord %[1]s %s=true", node, v1alpha1.BackAnnotation)
		}
		return command.Of("Wait until node %s of the same NodeMaintenance has rebooted and its pods are ready. "+
			"To see its progress: kubectl describe drainrecord %[1]s", node)
	}
	return blocker.Unlock(one.PodDisruptionBudget, one.lock)
}

// loosen returns the smallest change of a budget that lets the pods stay.
func loosen(b *policyv1.PodDisruptionBudget, needed int32) string {
	patch, what := fmt.Sprintf(`{"spec":{"minAvailable":null,"maxUnavailable":%d}}`, needed), "Allow "+phrase.Count(needed, "unavailable pod")
	if b.Status.ExpectedPods == 0 {
		patch, what = `{"spec":{"minAvailable":0,"maxUnavailable":null}}`, "Give the pods a controller, or use absolute numbers"
	}
	return what + ": " + command.Of("kubectl -n %s patch poddisruptionbudget %s --type=merge -p %s", b.Namespace, b.Name, command.Quote(patch))
}

func named(b v1alpha1.BudgetReference) string {
	return fmt.Sprintf("PodDisruptionBudget %s/%s", b.Namespace, b.Name)
}

const maxQuote = 800

const maxMessage = 1024

func sentence(text string) string {
	return strings.TrimRight(excerpt.Of(text, maxQuote), ". ") + "."
}
