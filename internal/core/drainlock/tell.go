package drainlock

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

// namedObjects is how many objects a message names.
const namedObjects = 3

// tell writes down how far the node is.
func (p *pass) tell() {
	p.status.ObservedGeneration = p.Record.Generation
	p.status.NodesAheadCount = p.ahead()
	if since := p.status.WaitStartTime; !p.unconfirmed() {
		p.status.WaitStartTime, p.status.TimeoutStartTime = nil, nil
	} else if now := stamp(p.Now); since == nil || since.After(stampAfter(p.Now).Time) {
		p.status.WaitStartTime = &now
	}
	switch {
	case p.Record.Spec.Complete:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonReleasing, p.tellRelease())
		p.tellReleased()
	case p.returned():
		p.set(metav1.ConditionFalse, v1alpha1.ReasonReturned, p.tellReturn())
	case p.outdated:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonLocking, "A PodDisruptionBudget was given up, and spec does not say yet what is needed without it.")
	case len(p.obstacles) > 0 && p.ClockSkewed:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonClockSkewed,
			fmt.Sprintf("To be locked: %s. No lock is taken or given up now. %s", list(p.needs), skew.Message))
	case len(p.obstacles) > 0:
		p.set(metav1.ConditionFalse, p.waitReason(), p.tellObstacles())
	case p.missing():
		p.set(metav1.ConditionFalse, v1alpha1.ReasonLocking, p.tellLocking())
	case p.unconfirmed():
		p.set(metav1.ConditionFalse, v1alpha1.ReasonSettling,
			fmt.Sprintf("Locked: %s. %s", list(p.needs), p.tellPromise()))
	case p.Record.Spec.Emptying:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonLocking, "Pods have to leave the node before it may go down.")
	case p.status.Boots == nil:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonSettling, "No PodDisruptionBudget is to be locked. "+p.tellPromise())
	default:
		p.tellHeld()
	}
}

// tellPromise says what is waited for when all locks are there.
func (p *pass) tellPromise() string {
	if p.Node != nil && p.refused(p.Node.UID) {
		return sentence("The node cannot be annotated: " + p.Refused[p.Node.UID])
	}
	return "Evictions that began before are waited for."
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
	if !slices.ContainsFunc(p.obstacles, func(o obstacle) bool { return !o.away }) {
		return v1alpha1.ReasonWaitingForNode
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
	if ahead := queued(p.status.NodesAheadCount); ahead != "" {
		message += " In the queue " + ahead + "."
	}
	return message
}

func (p *pass) tellReturn() string {
	return fmt.Sprintf("The node is back%s, since %s. It holds no locks.",
		p.sinceBoots(), p.status.Boots.ReturnedTime.UTC().Format(time.RFC3339))
}

func (p *pass) tellLocking() string {
	message := fmt.Sprintf("To be locked: %s.", list(p.needs))
	if node := p.mutexNode(); !p.mutexOwn() && !p.mutexFree() && !p.besideMutex() {
		message += fmt.Sprintf(" Node %s takes its locks first.", node)
	}
	return message
}

// tellRelease says what locks are kept for.
func (p *pass) tellRelease() string {
	var unready, unsure []string
	for _, lock := range p.status.Locks {
		for _, pod := range p.awaited(lock.BudgetReference) {
			if podclass.Ready(pod) {
				unsure = append(unsure, pod.Namespace+"/"+pod.Name)
			} else {
				unready = append(unready, pod.Namespace+"/"+pod.Name)
			}
		}
	}
	for _, pod := range p.remaining() {
		if p.told() && Promised(p.Node) && podclass.Ready(pod) && p.stale(pod.UID) {
			unsure = append(unsure, pod.Namespace+"/"+pod.Name)
		}
	}
	if len(unready)+len(unsure) == 0 {
		return "The maintenance is over, and the locks are given free."
	}
	message := "The maintenance is over."
	if len(unready) > 0 {
		message += fmt.Sprintf(" Locks are kept until these pods are ready: %s.", inWords(unready))
	}
	if len(unsure) > 0 {
		message += p.tellUnsure(unsure)
	}
	return message
}

// tellUnsure is about pods that look ready, and may do so from before a reboot. Where
// none was seen, a person can end that.
func (p *pass) tellUnsure(pods []string) string {
	believed := p.believedTime().UTC().Format(time.RFC3339)
	if p.status.Boots.RebootCount > 0 {
		return fmt.Sprintf(" Locks are kept until these pods are known to have been started since the reboot, or %s: %s.", believed, inWords(pods))
	}
	return fmt.Sprintf(" The node was not seen to reboot, so that what is said of its pods may be from before: it is believed from %s on. "+
		"If the node is back, or has not rebooted: %s", believed, command.Of("kubectl annotate drainrecord %s %s=true", p.Record.Name, v1alpha1.BackAnnotation))
}

// inWords are names in order, each once, and no more than a message bears.
func inWords(names []string) string {
	slices.Sort(names)
	return enumerate(slices.Compact(names))
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
	return phrase.Some(names, namedObjects)
}
