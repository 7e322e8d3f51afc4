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

// view is what a record asks for, next to what the world shows.
type view struct {
	now     time.Time
	record  *v1alpha1.DrainRecord
	longest time.Duration
	// pods are those of the node.
	pods map[types.UID]*corev1.Pod
	// staying are the pods of the record under each budget, by its UID.
	staying map[types.UID][]v1alpha1.StayingPod
	budgets map[v1alpha1.BudgetReference]sight
	// needs are the budgets to be locked, in order: those of the record that exist
	// and were not given up; none after its maintenance, or when the node is back.
	needs []v1alpha1.BudgetReference
}

// sight is a budget with the lock that it bears.
type sight struct {
	*policyv1.PodDisruptionBudget
	// hold is the lock; locked is true while it is in force.
	hold   budget.Hold
	locked bool
	// own is true if a drain of this node has taken it, whatever its maintenance.
	own bool
	// stray is true if the lock says the same, and the record asks for none.
	stray bool
}

// ours is true while a lock of this node is in force.
func (s sight) ours() bool { return s.own && s.locked }

func newView(f Facts) *view {
	v := &view{
		now: f.Now, record: f.Record, longest: f.Longest,
		pods:    map[types.UID]*corev1.Pod{},
		staying: map[types.UID][]v1alpha1.StayingPod{},
		budgets: map[v1alpha1.BudgetReference]sight{},
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
		one := sight{PodDisruptionBudget: b}
		one.hold, one.locked = budget.LockOf(b, skew.Earliest(f.Now, f.ClockSkewed), f.Longest)
		if locker(one.hold) == f.Record.Name {
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

// there returns the pods of the record under a budget that are still on the node.
func (v *view) there(b v1alpha1.BudgetReference) []*corev1.Pod {
	var there []*corev1.Pod
	for _, one := range v.staying[b.UID] {
		pod := v.pods[one.UID]
		if pod != nil && !podclass.Terminal(pod) && !slices.Contains(there, pod) {
			there = append(there, pod)
		}
	}
	return there
}

// cost is what a budget has to allow for the node to go: its pods that are ready
// now. Dormant is true if there are others that stay under it.
func (v *view) cost(b v1alpha1.BudgetReference) (needed int32, dormant bool) {
	for _, pod := range v.there(b) {
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
