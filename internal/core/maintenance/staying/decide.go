// Package staying decides which pods may stay on a node that comes back, because their label asks
// for it and their budgets can be locked. A node has locks for a bounded number of pods and
// budgets: those stay that its DrainRecord names already, then those under the fewest budgets, so
// that a user who gives pods many budgets does not displace those of others.
package staying

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Budgets finds PodDisruptionBudgets.
type Budgets interface {
	Applying(pod *corev1.Pod) []*policyv1.PodDisruptionBudget
	Count(namespace string) int
}

// Pod holds what is decided about a pod.
type Pod struct {
	Stays bool
	// Endurance is the shortest tolerated downtime, Taint the key that limits it.
	Endurance time.Duration
	Taint     string
	// Surplus is set if there is no room for its budgets.
	Surplus string
}

// Ask returns whether a pod may stay, regardless of other pods: its label asks for it, it is not
// terminating, and its node has not given up to lock one of its budgets. Record is the DrainRecord
// in force; nil if there is none.
func Ask(object *corev1.Pod, record *v1alpha1.DrainRecord, budgets Budgets) Pod {
	asks, _ := podclass.OnUpgrade(object)
	if !asks || object.DeletionTimestamp != nil || givenUp(object, record, budgets) {
		return Pod{}
	}
	endurance, taint := podclass.Endurance(object)
	return Pod{Stays: true, Endurance: endurance, Taint: taint}
}

func givenUp(object *corev1.Pod, record *v1alpha1.DrainRecord, budgets Budgets) bool {
	if record == nil || len(record.Status.GivenUp) == 0 {
		return false
	}
	return slices.ContainsFunc(budgets.Applying(object), func(b *policyv1.PodDisruptionBudget) bool {
		return drainlock.GivenUp(record, drainlock.ReferenceTo(b))
	})
}

// Surplus returns, by index, why pods that ask to stay have no room in the record.
func Surplus(asking map[int]*corev1.Pod, record *v1alpha1.DrainRecord, budgets Budgets) map[int]string {
	if !mayBeSurplus(asking, budgets) {
		return nil
	}
	surplus := map[int]string{}
	var claims []claim
	for index, object := range asking {
		protecting := budgets.Applying(object)
		switch {
		case len(protecting) > drainlock.MaxBudgetsOfPod:
			surplus[index] = fmt.Sprintf("it is under %d PodDisruptionBudgets, and a pod under more than %d is not kept. Let fewer budgets select it.",
				len(protecting), drainlock.MaxBudgetsOfPod)
		case len(protecting) > 0:
			claims = append(claims, claim{index, object, names(record, object.UID), protecting})
		}
	}
	slices.SortFunc(claims, claim.compare)
	named, pods := map[v1alpha1.BudgetReference]bool{}, 0
	for _, c := range claims {
		more := map[v1alpha1.BudgetReference]bool{}
		for _, b := range c.budgets {
			if reference := drainlock.ReferenceTo(b); !named[reference] {
				more[reference] = true
			}
		}
		if pods == drainlock.MaxPods || len(named)+len(more) > drainlock.MaxBudgets {
			surplus[c.index] = fmt.Sprintf("more pods ask to stay there than the %d pods under %d PodDisruptionBudgets for which a node can have locks.",
				drainlock.MaxPods, drainlock.MaxBudgets)
			continue
		}
		pods++
		maps.Copy(named, more)
	}
	return surplus
}

func mayBeSurplus(asking map[int]*corev1.Pod, budgets Budgets) bool {
	count, seen := 0, map[string]bool{}
	for _, object := range asking {
		if !seen[object.Namespace] {
			seen[object.Namespace] = true
			count += budgets.Count(object.Namespace)
		}
	}
	return len(asking) > drainlock.MaxPods || count > drainlock.MaxBudgetsOfPod
}

// claim is a pod that asks to stay under budgets.
type claim struct {
	index    int
	object   *corev1.Pod
	recorded bool // in the DrainRecord of the node
	budgets  []*policyv1.PodDisruptionBudget
}

// compare puts claims in the order in which they are granted.
func (c claim) compare(other claim) int {
	return cmp.Or(
		ones(other.recorded)-ones(c.recorded), cmp.Compare(len(c.budgets), len(other.budgets)),
		cmp.Compare(c.object.Namespace, other.object.Namespace), cmp.Compare(c.object.Name, other.object.Name), cmp.Compare(c.object.UID, other.object.UID),
	)
}

func names(record *v1alpha1.DrainRecord, pod types.UID) bool {
	return record != nil && slices.ContainsFunc(record.Spec.Pods, func(p v1alpha1.StayingPod) bool { return p.UID == pod })
}

func ones(counts bool) int {
	if counts {
		return 1
	}
	return 0
}
