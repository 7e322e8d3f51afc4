package drainlock

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

const (
	// MaxBudgetsOfPod is under how many budgets a pod may stay.
	MaxBudgetsOfPod = 16
	// MaxBudgets is how many budgets the pods of one node may stay under. A record of
	// so many fits into the API server's storage whatever their names are.
	MaxBudgets = 256
	// MaxPods is how many pods of one node may stay under budgets.
	MaxPods = 512
)

// Need is what the pods that stay on a node need.
type Need struct {
	// Maintenance is the oldest one in place of the node.
	Maintenance *v1alpha1.NodeMaintenance
	// Record is the record of the node; nil if there is none yet.
	Record *v1alpha1.DrainRecord
	// Staying are the pods that stay.
	Staying []*corev1.Pod
	// Leaving are the pods that have to leave and are still on the node.
	Leaving []*corev1.Pod
	// Budgets are those of the namespaces of these pods.
	Budgets []*policyv1.PodDisruptionBudget
}

// Needs returns the spec of the record of the node while its maintenance goes on.
// Its budgets are empty if there is nothing to lock. While pods have to leave none
// is added to those that were confirmed, as a node that waits for an eviction must
// not have others wait for it; and none of these is in it, so that they can be
// evicted.
func Needs(n Need) v1alpha1.DrainRecordSpec {
	spec := v1alpha1.DrainRecordSpec{
		MaintenanceRef: v1alpha1.MaintenanceReference{Name: n.Maintenance.Name, UID: n.Maintenance.UID},
		Reason:         n.Maintenance.Spec.Reason,
		Emptying:       len(n.Leaving) > 0,
	}
	if n.Maintenance.Spec.InPlace != nil {
		spec.InPlace = *n.Maintenance.Spec.InPlace
	}
	budgets := budget.Compile(n.Budgets)
	leftOut := n.leftOut(budgets)
	for _, pod := range n.Staying {
		stays := v1alpha1.StayingPod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
		for _, b := range budgets.Applying(pod) {
			stays.BudgetUIDs = append(stays.BudgetUIDs, b.UID)
			if !leftOut(ReferenceTo(b)) {
				spec.Budgets = append(spec.Budgets, ReferenceTo(b))
			}
		}
		spec.Pods = append(spec.Pods, stays)
	}
	spec.Pods = fitting(spec.Pods)
	spec.Budgets = inOrder(spec.Budgets)
	return spec
}

// fitting are the pods in order. Where there are too many, those without budgets are
// left out, for which nothing is done.
func fitting(pods []v1alpha1.StayingPod) []v1alpha1.StayingPod {
	if len(pods) > MaxPods {
		pods = slices.DeleteFunc(pods, func(pod v1alpha1.StayingPod) bool { return len(pod.BudgetUIDs) == 0 })
	}
	slices.SortFunc(pods, func(a, b v1alpha1.StayingPod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return pods
}

// leftOut tells which budgets are not locked, or not now.
func (n Need) leftOut(budgets budget.Compiled) func(v1alpha1.BudgetReference) bool {
	var ofLeaving []v1alpha1.BudgetReference
	for _, pod := range n.Leaving {
		for _, b := range budgets.Applying(pod) {
			ofLeaving = append(ofLeaving, ReferenceTo(b))
		}
	}
	return func(b v1alpha1.BudgetReference) bool {
		return GivenUp(n.Record, b) || slices.Contains(ofLeaving, b) || len(n.Leaving) > 0 && !confirmed(n.Record, b)
	}
}

// inOrder returns the budgets in the order in which locks are taken, each once.
func inOrder(budgets []v1alpha1.BudgetReference) []v1alpha1.BudgetReference {
	return slices.Compact(slices.SortedFunc(slices.Values(budgets), compare))
}

func compare(a, b v1alpha1.BudgetReference) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// ReferenceTo is how records name a budget.
func ReferenceTo(b *policyv1.PodDisruptionBudget) v1alpha1.BudgetReference {
	return v1alpha1.BudgetReference{Namespace: b.Namespace, Name: b.Name, UID: b.UID}
}
