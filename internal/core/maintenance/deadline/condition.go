package deadline

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

// Left holds what is left of a maintenance.
type Left struct {
	// Pods counts the awaited pods, Kept those that the deadline does not delete. Named names some.
	Pods, Kept int32
	Named      string
	// Unread counts the nodes whose pods could not be read.
	Unread int
	// Waiting counts the nodes that wait for a NodeBudget.
	Waiting int
	Blocked string
	// GivenBack is nil if the deadline has given no node back.
	GivenBack *Record
}

// Condition returns the condition PastDeadline of a maintenance in Drain.
func (d *Deadline) Condition(state State, left Left) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionPastDeadline, Status: metav1.ConditionFalse}
	by := inWords(d.Time)
	switch state {
	case Ahead:
		condition.Reason, condition.Message = v1alpha1.ReasonDeadlineAhead, "The nodes are to be empty by "+by+". Nothing is deleted then."
		switch {
		case d.GivesBack:
			condition.Message = "Nodes that are not drained by " + by + " are given back then. Nothing is deleted."
		case d.Deletes:
			condition.Message = fmt.Sprintf("Until %s pods leave within their budgets. What is left then is deleted past them, to be gone by %s.",
				inWords(d.Begin), by)
		}
	case TooEarly:
		condition.Reason = v1alpha1.ReasonDeadlineTooEarly
		condition.Message = "The deadline " + by + " had passed before the drain began, so nothing is deleted for it. " +
			"Set spec.deadline.time to a time that is still to come, or remove spec.deadline."
	case Unknown:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonClockSkewed
		condition.Message = "Whether the deadline " + by + " has come is not known, so nothing is " + d.action() + " for it: " + skew.Message
	default:
		d.setLate(left, &condition)
	}
	return condition
}

// action returns what the deadline does, as a participle.
func (d *Deadline) action() string {
	if d.GivesBack {
		return "given back"
	}
	return "deleted"
}

func inWords(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func (d *Deadline) setLate(left Left, condition *metav1.Condition) {
	more := ""
	if left.Waiting > 0 {
		more = fmt.Sprintf(" Waiting for a NodeBudget: %s.", phrase.Count(left.Waiting, "node"))
	}
	if left.Unread > 0 {
		more += fmt.Sprintf(" The pods of %s could not be read.", phrase.Count(left.Unread, "node"))
	}
	switch {
	case d.GivesBack && left.GivenBack != nil:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonGivenBack
		condition.Message = left.GivenBack.Message()
		if left.Pods > 0 {
			condition.Message += fmt.Sprintf(" On nodes that stay cordoned %s left: %s.", are(left.Pods), left.Named)
		}
		condition.Message += more
	case left.Pods == 0 && left.Unread > 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonWaitingForPods
		condition.Message = "The deadline " + inWords(d.Time) + " has come." + more
	case left.Pods == 0 && left.Waiting > 0:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonWaitingForPods
		condition.Message = "The deadline " + inWords(d.Time) + " has come." + more
	case left.Pods == 0:
		condition.Reason, condition.Message = v1alpha1.ReasonDeadlineMet, "No pod is left at the deadline "+inWords(d.Time)+"."
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = d.explainLeft(left)
		condition.Message += more
		if left.Blocked != "" {
			condition.Message += " " + left.Blocked
		}
	}
}

func (d *Deadline) explainLeft(left Left) (reason, message string) {
	by, named, are := inWords(d.Time), left.Named, are(left.Pods)
	if d.GivesBack {
		return v1alpha1.ReasonWaitingForPods, fmt.Sprintf(
			"The deadline %s has passed, and %s left on nodes that stay cordoned, because they had been drained before: %s.", by, are, named)
	}
	if !d.Deletes {
		return v1alpha1.ReasonWaitingForPods, fmt.Sprintf(
			"The deadline %s has passed, and %s left: %s. Nothing is deleted, as spec.deadline.onDeadline is Wait.", by, are, named)
	}
	switch left.Kept {
	case left.Pods:
		return v1alpha1.ReasonWaitingForPods, fmt.Sprintf("The deadline %s has come, and %s left that it does not delete: %s.", by, are, named)
	case 0:
		return v1alpha1.ReasonDeletingPods, fmt.Sprintf("%s left and deleted past their budgets, to be gone by %s: %s.", are, by, named)
	default:
		return v1alpha1.ReasonDeletingPods, fmt.Sprintf(
			"%s left and deleted past their budgets, to be gone by %s, but for %d that the deadline does not delete: %s.", are, by, left.Kept, named)
	}
}

func are(pods int32) string {
	if pods == 1 {
		return "1 pod is"
	}
	return phrase.Count(pods, "pod") + " are"
}
