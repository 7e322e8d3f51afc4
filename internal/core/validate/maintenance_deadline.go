package validate

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// DeadlineRefusal refuses a deadline that has passed and would at once delete all pods of the selected
// nodes, or give all of these back. It is empty for other deadlines, and while the clock is skewed:
// nothing is done then.
func (c MaintenanceChange) DeadlineRefusal() string {
	if c.Ends() || c.New.Spec.Deadline == nil || c.New.Spec.Deadline.Time.After(c.Now) {
		return ""
	}
	at := c.New.Spec.Deadline.Time
	if c.onDeadline() == v1alpha1.DeadlineGiveBack && (c.changesDeadline() || c.drainsNow()) {
		return fmt.Sprintf("spec.deadline.time %s has passed (it is %s), and with spec.deadline.onDeadline GiveBack all nodes would be given back at once: "+
			"set spec.deadline.time to a time that is still to come, or spec.deadline.onDeadline to Wait", phrase.Time(at.Time), phrase.Time(c.Now))
	}
	if c.onDeadline() != v1alpha1.DeadlineDelete || !c.asksForDeletion() {
		return ""
	}
	return fmt.Sprintf("spec.deadline.time %s has passed (it is %s), and with spec.deadline.onDeadline Delete all pods of the selected nodes would be deleted at once: "+
		"set spec.deadline.time to a time that is still to come, or spec.deadline.onDeadline to Wait", phrase.Time(at.Time), phrase.Time(c.Now))
}

func (c MaintenanceChange) onDeadline() v1alpha1.DeadlineAction {
	if c.New.Spec.Deadline == nil {
		return ""
	}
	return c.New.Spec.Deadline.OnDeadline
}

// drainsNow reports whether the change starts the drain.
func (c MaintenanceChange) drainsNow() bool {
	return c.New.Spec.Stage == v1alpha1.StageDrain && (c.Old == nil || c.Old.Spec.Stage != v1alpha1.StageDrain)
}

// asksForDeletion reports whether the change deletes more pods or at another time.
func (c MaintenanceChange) asksForDeletion() bool {
	return c.changesDeadline() || c.movesNodes() || c.changesInPlace() || c.Old.Spec.DrainDepth != c.New.Spec.DrainDepth
}

func (c MaintenanceChange) changesDeadline() bool {
	return c.Old == nil || !equality.Semantic.DeepEqual(c.Old.Spec.Deadline, c.New.Spec.Deadline)
}

func (c MaintenanceChange) ofDeadline() []string {
	d := c.New.Spec.Deadline
	if d == nil || !c.changesDeadline() && c.Old.Spec.Stage == c.New.Spec.Stage {
		return nil
	}
	if d.OnDeadline == v1alpha1.DeadlineGiveBack {
		return nil
	}
	if d.OnDeadline != v1alpha1.DeadlineDelete {
		if !d.Time.After(c.Now) {
			return []string{fmt.Sprintf("spec.deadline.time %s has passed (it is %s); nothing is deleted, as spec.deadline.onDeadline is Wait",
				phrase.Time(d.Time.Time), phrase.Time(c.Now))}
		}
		return nil
	}
	begin := d.Time.Add(-time.Duration(d.DeleteBeforeSeconds) * time.Second)
	if !begin.After(c.Now) {
		return []string{fmt.Sprintf("spec.deadline: less than %d seconds (deleteBeforeSeconds) are left until %s, so that pods are deleted past their "+
			"PodDisruptionBudgets as soon as the drain begins", d.DeleteBeforeSeconds, phrase.Time(d.Time.Time))}
	}
	return []string{fmt.Sprintf("spec.deadline.onDeadline is Delete: pods that are left at %s, %d seconds (deleteBeforeSeconds) before the time, are deleted past their "+
		"PodDisruptionBudgets", phrase.Time(begin), d.DeleteBeforeSeconds)}
}
