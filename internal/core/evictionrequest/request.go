package evictionrequest

import (
	"fmt"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const groupMember = "Target pod references a SchedulingGroup. Eviction is currently not supported."

// fault returns why requests for the target are invalid; empty if they are not.
func (s subject) fault() string {
	switch {
	case len(s.evictions) == 0 && s.namesake == nil:
		return "Target pod not found."
	case len(s.evictions) == 0 && s.pod == nil:
		return fmt.Sprintf("Target pod UID mismatch: expected %s, got %s.", s.target.UID, s.namesake.UID)
	case s.pod != nil && s.pod.Spec.SchedulingGroup != nil:
		return groupMember
	}
	return ""
}

func settled(request *lifecyclev1alpha1.EvictionRequest) bool {
	if !observed(request) {
		return false
	}
	failed := meta.FindStatusCondition(request.Status.Conditions, conditionFailed)
	invalid := failed != nil && failed.Status == metav1.ConditionTrue && failed.Reason == string(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid)
	return invalid || meta.IsStatusConditionTrue(request.Status.Conditions, conditionEvicted)
}

// conditionsOf returns the conditions of an Eviction for its requests.
func (s subject) conditionsOf(
	relevant *lifecyclev1alpha1.Eviction, after map[*lifecyclev1alpha1.Eviction]lifecyclev1alpha1.EvictionStatus,
) []metav1.Condition {
	if relevant == nil {
		if s.wanted() {
			return awaiting()
		}
		return failed(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters, "The request was withdrawn.")
	}
	var copied []metav1.Condition
	for _, c := range after[relevant].Conditions {
		if c.Type == conditionFailed || c.Type == conditionEvicted {
			copied = append(copied, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return copied
}

func (d *Decision) refuse(s Snapshot, request *lifecyclev1alpha1.EvictionRequest, fault string) {
	if request.DeletionTimestamp == nil && !settled(request) {
		d.setConditions(s, request, failed(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, fault))
	}
}

func (d *Decision) setConditions(s Snapshot, request *lifecyclev1alpha1.EvictionRequest, conditions []metav1.Condition) {
	status := *request.Status.DeepCopy()
	status.ObservedGeneration = new(request.Generation)
	for _, c := range conditions {
		set(&status.Conditions, s.Now, c)
	}
	if !equality.Semantic.DeepEqual(status, request.Status) {
		d.Requests = append(d.Requests, RequestChange{request, status})
	}
}
