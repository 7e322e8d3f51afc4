package maintenance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

// pastDeadline says whether pods are left at the deadline of a maintenance in Drain, and
// what becomes of them; nil if it has none.
func (c *conclusion) pastDeadline(m *maintenance, t status.Totals, blocked metav1.Condition) *metav1.Condition {
	state := c.deadlineOf(m)
	if state == noDeadline {
		return nil
	}
	condition := metav1.Condition{Type: v1alpha1.ConditionPastDeadline, Status: metav1.ConditionFalse}
	by := inWords(m.deadline.time)
	switch state {
	case deadlineAhead:
		condition.Reason, condition.Message = v1alpha1.ReasonDeadlineAhead, "The nodes are to be empty by "+by+". Nothing is deleted then."
		if m.deadline.deletes {
			condition.Message = fmt.Sprintf("Until %s pods leave within their budgets. What is left then is deleted past them, to be gone by %s.",
				inWords(m.deadline.begin), by)
		}
	case deadlineTooEarly:
		condition.Reason = v1alpha1.ReasonDeadlineTooEarly
		condition.Message = "The deadline " + by + " had passed before the drain began, so nothing is deleted for it. " +
			"Set spec.deadline.time to a time that is still to come, or remove spec.deadline."
	case deadlineUnknown:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonClockSkewed
		condition.Message = "Whether the deadline " + by + " has come is not known, so nothing is deleted for it: " + skew.Message
	default:
		c.tellLate(m, t, blocked, &condition)
	}
	return &condition
}

// inWords is a time as messages show it.
func inWords(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// tellLate says who is left at a deadline that has come, and for whom it waits.
func (c *conclusion) tellLate(m *maintenance, t status.Totals, blocked metav1.Condition, condition *metav1.Condition) {
	by := inWords(m.deadline.time)
	left, unread := t.Left(), ""
	if t.Unread > 0 {
		unread = fmt.Sprintf(" The pods of %s could not be read.", status.Plural(t.Unread, "node"))
	}
	if left == 0 && t.Unread > 0 {
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonWaitingForPods
		condition.Message = "The deadline " + by + " has come." + unread
		return
	}
	if left == 0 {
		condition.Reason, condition.Message = v1alpha1.ReasonDeadlineMet, "No pod is left at the deadline "+by+"."
		return
	}
	condition.Status = metav1.ConditionTrue
	condition.Reason, condition.Message = c.tellLeft(m, are(left), left)
	condition.Message += unread
	if blocked.Status == metav1.ConditionTrue {
		condition.Message += " " + blocked.Message
	}
}

// tellLeft says what becomes of the pods that are left.
func (c *conclusion) tellLeft(m *maintenance, are string, left int32) (reason, message string) {
	by, named := inWords(m.deadline.time), c.leftOf(m)
	if !m.deadline.deletes {
		return v1alpha1.ReasonWaitingForPods, fmt.Sprintf(
			"The deadline %s has passed, and %s left: %s. Nothing is deleted, as spec.deadline.onDeadline is Wait.", by, are, named)
	}
	switch kept := c.undeletable(m); kept {
	case left:
		return v1alpha1.ReasonWaitingForPods, fmt.Sprintf("The deadline %s has come, and %s left that it does not delete: %s.", by, are, named)
	case 0:
		return v1alpha1.ReasonDeletingPods, fmt.Sprintf("%s left and deleted past their budgets, to be gone by %s: %s.", are, by, named)
	default:
		return v1alpha1.ReasonDeletingPods, fmt.Sprintf(
			"%s left and deleted past their budgets, to be gone by %s, but for %d that the deadline does not delete: %s.", are, by, kept, named)
	}
}

// are is a number of pods with its verb.
func are(pods int32) string {
	if pods == 1 {
		return "1 pod is"
	}
	return status.Plural(pods, "pod") + " are"
}

// undeletable is how many of the pods that a maintenance waits for its deadline does not
// delete.
func (c *conclusion) undeletable(m *maintenance) int32 {
	count := int32(0)
	for _, one := range m.selections {
		late, _ := c.late(one.node, m.deadline)
		for i := range one.node.pods {
			if p := &one.node.pods[i]; m.counts(p) && (late || !one.node.deletable(p, m)) {
				count++
			}
		}
	}
	return count
}

// namedPods is how many pods a message names.
const namedPods = 3

// leftOf names some of the pods that a maintenance waits for, by node.
func (c *conclusion) leftOf(m *maintenance) string {
	var named []string
	more := int32(0)
	for _, one := range m.selections {
		if len(named) == namedPods {
			more += one.counted()
			continue
		}
		var left []string
		for i := range one.node.pods {
			if p := &one.node.pods[i]; m.counts(p) {
				left = append(left, p.object.Namespace+"/"+p.object.Name+" on "+one.node.name())
			}
		}
		slices.Sort(left)
		taken := min(len(left), namedPods-len(named))
		named = append(named, left[:taken]...)
		more += int32(len(left) - taken)
	}
	text := strings.Join(named, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// becameLate returns true if PastDeadline has taken one of these reasons.
func becameLate(before, after []metav1.Condition, reasons ...string) bool {
	return slices.ContainsFunc(reasons, func(reason string) bool {
		return status.Became(before, after, v1alpha1.ConditionPastDeadline, reason)
	})
}
