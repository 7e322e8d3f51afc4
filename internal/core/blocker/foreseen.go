package blocker

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/command"
)

// Foreseen returns the blocker that Of would report if the pod was evicted now. It needs no
// Evacuation.
func Foreseen(f *Facts) (v1alpha1.Blocker, bool) {
	applying := f.Budgets.Applying(f.Pod)
	if len(applying) == 0 || f.Pod.DeletionTimestamp != nil || f.Pod.Status.Phase == corev1.PodPending {
		return v1alpha1.Blocker{}, false
	}
	b, found := foreseen(f, applying)
	b.PodCount = 1
	return b, found
}

func foreseen(f *Facts, applying []*policyv1.PodDisruptionBudget) (v1alpha1.Blocker, bool) {
	if len(applying) > 1 {
		return refusedForBudgets(f, "The eviction API refuses to evict a pod that is under several disruption budgets."), true
	}
	only := applying[0]
	// How long locks may hold is for those who honour them.
	if hold, locked := budget.LockOf(only, f.Now, 0); locked {
		return v1alpha1.Blocker{Type: v1alpha1.BlockerPDBLocked, Object: OfBudget(only), Message: hold.Describe(only) + ".", Suggestion: Unlock(only, hold)}, true
	}
	allowed, known := budget.Allowed(only)
	status := only.Status
	enough := budget.LetsUnreadyGo(only) || status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0
	switch {
	case !known:
		return v1alpha1.Blocker{
			Type: v1alpha1.BlockerPDBExhausted, Object: OfBudget(only),
			Message:    fmt.Sprintf("The status of PodDisruptionBudget %s is older than its spec, so its allowed disruptions are unknown.", only.Name),
			Suggestion: command.Of("If it stays so, the disruption controller does not run. See the budget: kubectl -n %s describe poddisruptionbudget %s", only.Namespace, only.Name),
		}, true
	case allowed > 0, unready(f.Pod) && enough:
		return v1alpha1.Blocker{}, false
	}
	asked := *f
	asked.Evacuation = &v1alpha1.Evacuation{Status: v1alpha1.EvacuationStatus{RefusingBudgetName: only.Name}}
	return refusedByBudget(&asked, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently.", only.Name, status.DesiredHealthy, status.CurrentHealthy)), true
}

// Unreachable says that the kubelet of a node does not answer, if it does not.
func Unreachable(node *corev1.Node) (v1alpha1.Blocker, bool) {
	since, unreachable := unreachableSince(node)
	if !unreachable {
		return v1alpha1.Blocker{}, false
	}
	return unreachableNode(&Facts{Node: node}, since), true
}
