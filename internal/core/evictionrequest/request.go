package evictionrequest

import (
	"fmt"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const groupMember = "Target pod references a SchedulingGroup. Eviction is currently not supported."

// fault is why nothing can come of requests for the target; empty if something can. That a
// pod is gone is no fault once there was an Eviction of it.
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

// settled reports whether nothing about a request can change any more.
func settled(request *lifecyclev1alpha1.EvictionRequest) bool {
	if !observed(request) {
		return false
	}
	failed := meta.FindStatusCondition(request.Status.Conditions, conditionFailed)
	invalid := failed != nil && failed.Status == metav1.ConditionTrue && failed.Reason == string(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid)
	return invalid || meta.IsStatusConditionTrue(request.Status.Conditions, conditionEvicted)
}

// conditionsOf are the conditions of an Eviction, as those who asked for it have them.
// Without one, somebody has withdrawn before there was any, or one is just made.
func (s subject) conditionsOf(
	relevant *lifecyclev1alpha1.Eviction, after map[*lifecyclev1alpha1.Eviction]lifecyclev1alpha1.EvictionStatus,
) []metav1.Condition {
	if relevant == nil {
		if s.wanted() {
			return awaiting()
		}
		return failed(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters, "Nobody asks for the eviction.")
	}
	var told []metav1.Condition
	for _, c := range after[relevant].Conditions {
		if c.Type == conditionFailed || c.Type == conditionEvicted {
			told = append(told, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return told
}

// refuse tells a request that nothing can come of it.
func (d *Decision) refuse(s Snapshot, request *lifecyclev1alpha1.EvictionRequest, fault string) {
	if request.DeletionTimestamp == nil && !settled(request) {
		d.tell(s, request, failed(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, fault))
	}
}

// tell gives a request its conditions, unless it has them.
func (d *Decision) tell(s Snapshot, request *lifecyclev1alpha1.EvictionRequest, conditions []metav1.Condition) {
	status := *request.Status.DeepCopy()
	status.ObservedGeneration = generation(request)
	for _, c := range conditions {
		set(&status.Conditions, s.Now, c)
	}
	if !equality.Semantic.DeepEqual(status, request.Status) {
		d.Requests = append(d.Requests, RequestChange{request, status})
	}
}
