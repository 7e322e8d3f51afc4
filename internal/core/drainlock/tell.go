package drainlock

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// namedObjects is how many objects a message names.
const namedObjects = 3

// tell writes down how far the node is.
func (p *pass) tell() {
	p.status.ObservedGeneration = p.Record.Generation
	if since := p.status.WaitStartTime; !p.unconfirmed() {
		p.status.WaitStartTime, p.status.TimeoutStartTime = nil, nil
	} else if now := stamp(p.Now); since == nil || since.After(stampAfter(p.Now).Time) {
		p.status.WaitStartTime = &now
	}
	switch {
	case p.Record.Spec.Complete:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonReleasing, p.tellRelease())
		p.tellReleased()
	case p.outdated:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonLocking, "A PodDisruptionBudget was given up, and spec does not say yet what is needed without it.")
	case len(p.obstacles) > 0 && p.Doubt != "":
		p.set(metav1.ConditionFalse, v1alpha1.ReasonClockSkewed,
			fmt.Sprintf("To be locked: %s. No lock is taken or given up now. %s", list(p.needs), p.Doubt))
	case len(p.obstacles) > 0:
		p.set(metav1.ConditionFalse, p.waitReason(), p.tellObstacles())
	case p.missing():
		p.set(metav1.ConditionFalse, v1alpha1.ReasonLocking, p.tellLocking())
	case p.unconfirmed():
		p.set(metav1.ConditionFalse, v1alpha1.ReasonSettling,
			fmt.Sprintf("Locked: %s. Evictions that began before are waited for.", list(p.needs)))
	default:
		p.tellHeld()
	}
}

func (p *pass) tellHeld() {
	message := "No PodDisruptionBudget is to be locked."
	if len(p.needs) > 0 {
		message = fmt.Sprintf("Locked: %s.", list(p.needs))
	}
	if len(p.needs) > 0 && !meta.IsStatusConditionTrue(p.Record.Status.Conditions, v1alpha1.ConditionLocked) {
		p.emit(event.LocksHeld(p.Record, fmt.Sprintf("For the pods that stay on node %s these PodDisruptionBudgets are locked: %s.", p.Record.Name, list(p.needs))))
	}
	p.set(metav1.ConditionTrue, v1alpha1.ReasonHeld, message)
}

// waitReason tells budgets that cannot be written from those that cannot be had.
func (p *pass) waitReason() string {
	if slices.ContainsFunc(p.obstacles, func(o obstacle) bool { return o.refused }) {
		return v1alpha1.ReasonBudgetRefused
	}
	return v1alpha1.ReasonWaitingForBudget
}

func (p *pass) tellObstacles() string {
	message := p.obstacles[0].message
	if len(p.obstacles) > 1 {
		var others []v1alpha1.BudgetReference
		for _, o := range p.obstacles[1:] {
			others = append(others, o.BudgetReference)
		}
		message += fmt.Sprintf(" Neither can be locked: %s.", list(others))
	}
	return message
}

func (p *pass) tellLocking() string {
	message := fmt.Sprintf("To be locked: %s.", list(p.needs))
	if node := p.mutexNode(); !p.mutexOwn() && !p.mutexFree() {
		message += fmt.Sprintf(" Node %s takes its locks first.", node)
	}
	return message
}

func (p *pass) tellRelease() string {
	var waits []string
	for _, lock := range p.status.Locks {
		for _, pod := range p.unready(lock.BudgetReference) {
			waits = append(waits, pod.Namespace+"/"+pod.Name)
		}
	}
	if len(waits) == 0 {
		return "The maintenance is over, and the locks are given free."
	}
	slices.Sort(waits)
	message := fmt.Sprintf("The maintenance is over. Locks are kept until these pods are ready: %s.", enumerate(slices.Compact(waits)))
	if p.Doubt != "" {
		message += " Until then no lock ends. " + p.Doubt
	}
	return message
}

// tellReleased tells once that the last lock is gone.
func (p *pass) tellReleased() {
	if len(p.Record.Status.Locks) > 0 && len(p.status.Locks) == 0 {
		p.emit(event.LocksReleased(p.Record, fmt.Sprintf("The maintenance of node %s is over, and no PodDisruptionBudget is locked for it any more.", p.Record.Name)))
	}
}

// set writes condition Locked. Its transition time changes only with its status.
func (p *pass) set(status metav1.ConditionStatus, reason, message string) {
	changed := stamp(p.Now)
	before := meta.FindStatusCondition(p.Record.Status.Conditions, v1alpha1.ConditionLocked)
	if before != nil && before.Status == status && !before.LastTransitionTime.IsZero() {
		changed = before.LastTransitionTime
	}
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionLocked, Status: status, Reason: reason, Message: message, ObservedGeneration: p.Record.Generation,
	})
	meta.FindStatusCondition(p.status.Conditions, v1alpha1.ConditionLocked).LastTransitionTime = changed
}

func list(budgets []v1alpha1.BudgetReference) string {
	var names []string
	for _, b := range budgets {
		names = append(names, b.Namespace+"/"+b.Name)
	}
	return enumerate(names)
}

func enumerate(names []string) string {
	if more := len(names) - namedObjects; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namedObjects], ", "), more)
	}
	return strings.Join(names, ", ")
}
