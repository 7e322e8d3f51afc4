package evacuation

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// heldBack is what would happen because of the time, and does not as the clock is not
// believed; empty if nothing is held back.
func heldBack(s Snapshot, d Decision) string {
	status := &s.Evacuation.Status
	left, called := untilWithdrawal(s)
	switch {
	case s.Doubt == "" || s.Pod == nil:
		return ""
	case called && left <= 0:
		return "The request of those who call the eviction API stands. " + s.Doubt
	case d.State != StateEvacuating && d.State != StateForbidden:
		return ""
	case status.ActiveEvacuatorClass == "" || status.ActiveEvacuatorCompleted || status.EvacuationProgressTimestamp == nil:
		return ""
	case s.Now.Before(s.deadline()):
		return ""
	}
	return "The turn goes on, though " + silence(status) + ". " + s.Doubt
}

// tellDoubt says in a condition what is held back, and takes it away when nothing is.
func tellDoubt(s Snapshot, d Decision) Decision {
	told := meta.FindStatusCondition(s.Evacuation.Status.Conditions, v1alpha1.ConditionClockSkewed)
	words := heldBack(s, d)
	switch {
	case d.Delete, len(d.DropFinalizers) > 0, d.Evacuators != nil:
		return d
	case told == nil && words == "", told != nil && told.Message == words:
		return d
	}
	if d.Status == nil {
		d.Status = s.Evacuation.Status.DeepCopy()
	}
	if words == "" {
		meta.RemoveStatusCondition(&d.Status.Conditions, v1alpha1.ConditionClockSkewed)
		return d
	}
	meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionClockSkewed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClockSkewed, Message: words,
		LastTransitionTime: metav1.Time{Time: s.Now},
	})
	return d
}
