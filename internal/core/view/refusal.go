package view

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// refusalOf returns why an eviction is refused, also whether its budget can ever allow it.
func refusalOf(namespace string, status *v1alpha1.EvacuationStatus, said []v1alpha1.Blocker) (b v1alpha1.Blocker, refused bool) {
	answer := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionEvictionRefused)
	if answer == nil || answer.Status != metav1.ConditionTrue {
		return v1alpha1.Blocker{}, false
	}
	b = v1alpha1.Blocker{Type: v1alpha1.BlockerType(answer.Reason), Message: answer.Message, SinceTime: &answer.LastTransitionTime}
	budget := status.RefusingBudgetName
	for i := range said {
		one := &said[i]
		switch {
		case budget != "" && (one.Object.Name != budget || one.Object.Namespace != namespace):
		case one.Type == b.Type && one.Suggestion != "", budget != "" && saysNever(&b, one):
			return explained(b, one), true
		}
	}
	return b, true
}

func saysNever(answer, by *v1alpha1.Blocker) bool {
	return answer.Type == v1alpha1.BlockerPDBExhausted && by.Type == v1alpha1.BlockerPDBUnsatisfiable
}

func explained(answer v1alpha1.Blocker, by *v1alpha1.Blocker) v1alpha1.Blocker {
	if saysNever(&answer, by) {
		answer.Type, answer.Message = by.Type, by.Message
	}
	answer.Suggestion = by.Suggestion
	return answer
}

// BlockersOn returns the blockers of a node in all NodeMaintenances.
func BlockersOn(maintenances []*v1alpha1.NodeMaintenance, node string) []v1alpha1.Blocker {
	var said []v1alpha1.Blocker
	for _, m := range maintenances {
		if on := statusOn(m, node); on != nil {
			said = append(said, on.Blockers...)
		}
	}
	return said
}
