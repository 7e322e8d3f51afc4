package drainlock

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

const (
	// MaxBudgetsOfPod is the number of budgets under which a pod may stay.
	MaxBudgetsOfPod = 16
	// MaxBudgets is the number of budgets under which the pods of one node may stay. Such a record
	// fits into etcd whatever the names are.
	MaxBudgets = 256
	// MaxPods is the number of pods of one node that may stay under budgets.
	MaxPods = 512
)

// Need holds the pods of a node under maintenance, and their budgets.
type Need struct {
	// Maintenance is the oldest in-place maintenance of the node.
	Maintenance *v1alpha1.NodeMaintenance
	// Record is nil if there is none yet.
	Record  *v1alpha1.DrainRecord
	Staying []*corev1.Pod
	// Leaving are the pods that must leave and are still on the node.
	Leaving []*corev1.Pod
	Budgets []*policyv1.PodDisruptionBudget
}

// Needs returns the spec of the record of the node during its maintenance. While pods must leave,
// no budget is added to the confirmed ones, because a node that waits for an eviction must not
// block others. Budgets of leaving pods are left out so that they can be evicted.
func Needs(n Need) v1alpha1.DrainRecordSpec {
	spec := v1alpha1.DrainRecordSpec{
		MaintenanceRef: v1alpha1.MaintenanceReference{Name: n.Maintenance.Name, UID: n.Maintenance.UID},
		Reason:         n.Maintenance.Spec.Reason,
		Emptying:       len(n.Leaving) > 0,
		InPlace:        ptr.Deref(n.Maintenance.Spec.InPlace, v1alpha1.InPlace{}),
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

// fitting returns the pods in order, without those without budgets if there are too many.
func fitting(pods []v1alpha1.StayingPod) []v1alpha1.StayingPod {
	if len(pods) > MaxPods {
		pods = slices.DeleteFunc(pods, func(pod v1alpha1.StayingPod) bool { return len(pod.BudgetUIDs) == 0 })
	}
	slices.SortFunc(pods, func(a, b v1alpha1.StayingPod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return pods
}

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

func inOrder(budgets []v1alpha1.BudgetReference) []v1alpha1.BudgetReference {
	return slices.Compact(slices.SortedFunc(slices.Values(budgets), compare))
}

func compare(a, b v1alpha1.BudgetReference) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// ReferenceTo returns the reference by which records name a budget.
func ReferenceTo(b *policyv1.PodDisruptionBudget) v1alpha1.BudgetReference {
	return v1alpha1.BudgetReference{Namespace: b.Namespace, Name: b.Name, UID: b.UID}
}
