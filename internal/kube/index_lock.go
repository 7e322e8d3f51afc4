package kube

import (
	"encoding/json"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// RecordBudgets extracts RecordBudgetField.
func RecordBudgets(object client.Object) []string {
	record, ok := object.(*v1alpha1.DrainRecord)
	if !ok {
		return nil
	}
	keys := sets.New[string]()
	insert := func(b v1alpha1.BudgetReference) {
		keys.Insert(client.ObjectKey{Namespace: b.Namespace, Name: b.Name}.String())
	}
	for _, b := range record.Spec.Budgets {
		insert(b)
	}
	for i := range record.Status.Locks {
		insert(record.Status.Locks[i].BudgetReference)
	}
	for i := range record.Status.GivenUp {
		insert(record.Status.GivenUp[i].BudgetReference)
	}
	return keys.UnsortedList()
}

// LockNode extracts LockNodeField. Core decides whether the lock is valid.
func LockNode(object client.Object) []string {
	budget, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok || budget.Annotations[v1alpha1.LockAnnotation] == "" {
		return nil
	}
	var lock struct {
		Holder string `json:"holder"`
	}
	// An unreadable lock is not of a drain.
	_ = json.Unmarshal([]byte(budget.Annotations[v1alpha1.LockAnnotation]), &lock)
	parts := strings.Split(lock.Holder, "/")
	if len(parts) != 3 {
		return nil
	}
	return parts[2:]
}
