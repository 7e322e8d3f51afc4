package drainlock

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

// view joins what a record asks for with what is observed.
type view struct {
	now     time.Time
	record  *v1alpha1.DrainRecord
	longest time.Duration
	pods    map[types.UID]*corev1.Pod
	staying map[types.UID][]v1alpha1.StayingPod
	budgets map[v1alpha1.BudgetReference]observedBudget
	// needs are the budgets to lock, in order: existing ones that were not given up. There are none
	// after the maintenance or when the node is back.
	needs []v1alpha1.BudgetReference
}

type observedBudget struct {
	*policyv1.PodDisruptionBudget
	// locked is true while the lock is in force.
	lock   budget.Hold
	locked bool
	// own is true if a drain of this node has taken it, for any maintenance.
	own bool
	// stray is true if the lock names this node and the record does not ask for it.
	stray bool
}

func (s observedBudget) ours() bool { return s.own && s.locked }

func newView(f Facts) *view {
	v := &view{
		now: f.Now, record: f.Record, longest: f.Longest,
		pods:    map[types.UID]*corev1.Pod{},
		staying: map[types.UID][]v1alpha1.StayingPod{},
		budgets: map[v1alpha1.BudgetReference]observedBudget{},
	}
	for _, pod := range f.Pods {
		v.pods[pod.UID] = pod
	}
	for _, pod := range f.Record.Spec.Pods {
		for _, under := range pod.BudgetUIDs {
			v.staying[under] = append(v.staying[under], pod)
		}
	}
	for _, b := range f.Budgets {
		one := observedBudget{PodDisruptionBudget: b}
		one.lock, one.locked = budget.LockOf(b, skew.Earliest(f.Now, f.ClockSkewed), f.Longest)
		if locker(one.lock) == f.Record.Name {
			one.own = Asks(f.Record, b)
			one.stray = !one.own
		}
		v.budgets[ReferenceTo(b)] = one
	}
	if !f.Record.Spec.Complete && !Returned(f.Record) {
		v.needs = slices.DeleteFunc(inOrder(f.Record.Spec.Budgets), func(b v1alpha1.BudgetReference) bool {
			return v.budgets[b].PodDisruptionBudget == nil || GivenUp(f.Record, b)
		})
	}
	return v
}

func (v *view) podsUnder(b v1alpha1.BudgetReference) []*corev1.Pod {
	return v.onNode(v.staying[b.UID])
}

func (v *view) onNode(staying []v1alpha1.StayingPod) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, one := range staying {
		if pod := v.pods[one.UID]; pod != nil && !podclass.Terminal(pod) && !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// cost returns how many ready pods the budget must allow to go. Dormant is true if others stay
// under it.
func (v *view) cost(b v1alpha1.BudgetReference) (needed int32, dormant bool) {
	for _, pod := range v.podsUnder(b) {
		switch {
		case pod.DeletionTimestamp != nil:
		case podclass.Ready(pod):
			needed++
		default:
			dormant = true
		}
	}
	return needed, dormant
}
