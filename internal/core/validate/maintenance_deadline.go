package validate

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// DeadlineRefusal refuses a deadline that deletes and has passed, because all pods of the selected
// nodes would be deleted at once. It is empty for other deadlines, and while the clock is skewed:
// nothing is deleted then.
func (c MaintenanceChange) DeadlineRefusal() string {
	if c.Ends() || !c.deletesAtDeadline() || !c.asksForDeletion() {
		return ""
	}
	at := c.New.Spec.Deadline.Time
	if at.After(c.Now) {
		return ""
	}
	return fmt.Sprintf("spec.deadline.time %s has passed (it is %s), and with spec.deadline.onDeadline Delete all pods of the selected nodes would be deleted at once: "+
		"set spec.deadline.time to a time that is still to come, or spec.deadline.onDeadline to Wait", phrase.Time(at.Time), phrase.Time(c.Now))
}

func (c MaintenanceChange) deletesAtDeadline() bool {
	d := c.New.Spec.Deadline
	return d != nil && d.OnDeadline == v1alpha1.DeadlineDelete
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
