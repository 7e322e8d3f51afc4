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

const namedObjects = 3

func (p *planner) report() {
	p.status.ObservedGeneration = p.Record.Generation
	p.status.NodesAheadCount = p.ahead()
	if since := p.status.WaitStartTime; !p.hasUnconfirmed() {
		p.status.WaitStartTime, p.status.TimeoutStartTime = nil, nil
	} else if now := stamp(p.Now); since == nil || since.After(stampAfter(p.Now).Time) {
		p.status.WaitStartTime = &now
	}
	switch {
	case p.Record.Spec.Complete:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonReleasing, p.releaseMessage())
		p.reportReleased()
	case p.hasReturned():
		p.set(metav1.ConditionFalse, v1alpha1.ReasonReturned, p.returnMessage())
	case p.outdated:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonLocking, "A PodDisruptionBudget was given up. Waiting for spec to be updated.")
	case len(p.obstacles) > 0 && p.ClockSkewed:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonClockSkewed,
			fmt.Sprintf("To be locked: %s. Locks are neither taken nor given up. %s", list(p.needs), skew.Message))
	case len(p.obstacles) > 0:
		p.set(metav1.ConditionFalse, p.waitReason(), p.obstacleMessage())
	case p.isMissing():
		p.set(metav1.ConditionFalse, v1alpha1.ReasonLocking, p.lockingMessage())
	case p.hasUnconfirmed():
		p.set(metav1.ConditionFalse, v1alpha1.ReasonSettling,
			fmt.Sprintf("Locked: %s. %s", list(p.needs), p.settlingMessage()))
	case p.Record.Spec.Emptying:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonLocking, "Pods must leave the node before it may go down.")
	case p.status.Boots == nil:
		p.set(metav1.ConditionFalse, v1alpha1.ReasonSettling, "No PodDisruptionBudget needs a lock. "+p.settlingMessage())
	default:
		p.reportHeld()
	}
}

func (p *planner) settlingMessage() string {
	if p.Node != nil && p.isRefused(p.Node.UID) {
		return sentence("The node cannot be annotated: " + p.Refused[p.Node.UID])
	}
	return "Waiting for earlier evictions."
}

func (p *planner) reportHeld() {
	message := "No PodDisruptionBudget needs a lock."
	if len(p.needs) > 0 {
		message = fmt.Sprintf("Locked: %s.", list(p.needs))
	}
	if len(p.needs) > 0 && !meta.IsStatusConditionTrue(p.Record.Status.Conditions, v1alpha1.ConditionLocked) {
		p.emit(event.LocksHeld(p.Record, fmt.Sprintf("Locked for the pods that stay on node %s: %s.", p.Record.Name, list(p.needs))))
	}
	p.set(metav1.ConditionTrue, v1alpha1.ReasonHeld, message)
}

func (p *planner) waitReason() string {
	if slices.ContainsFunc(p.obstacles, func(o obstacle) bool { return o.refused }) {
		return v1alpha1.ReasonBudgetRefused
	}
	if !slices.ContainsFunc(p.obstacles, func(o obstacle) bool { return !o.away }) {
		return v1alpha1.ReasonWaitingForNode
	}
	return v1alpha1.ReasonWaitingForBudget
}

func (p *planner) obstacleMessage() string {
	message := p.obstacles[0].message
	if len(p.obstacles) > 1 {
		var others []v1alpha1.BudgetReference
		for _, o := range p.obstacles[1:] {
			others = append(others, o.BudgetReference)
		}
		message += fmt.Sprintf(" Also not available: %s.", list(others))
	}
	if ahead := queued(p.status.NodesAheadCount); ahead != "" {
		message += " In the queue: " + ahead + "."
	}
	return message
}

func (p *planner) returnMessage() string {
	return fmt.Sprintf("The node is back%s since %s. Its locks are released.",
		p.sinceBoots(), p.status.Boots.ReturnedTime.UTC().Format(time.RFC3339))
}

func (p *planner) lockingMessage() string {
	message := fmt.Sprintf("To be locked: %s.", list(p.needs))
	if node := p.mutexNode(); !p.mutexOwn() && !p.mutexFree() && !p.besideMutex() {
		message += fmt.Sprintf(" Node %s takes its locks first.", node)
	}
	return message
}

func (p *planner) releaseMessage() string {
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
		if p.isPromised() && Promised(p.Node) && podclass.Ready(pod) && p.isStale(pod.UID) {
			unsure = append(unsure, pod.Namespace+"/"+pod.Name)
		}
	}
	if len(unready)+len(unsure) == 0 {
		return "The maintenance is over. Releasing the locks."
	}
	message := "The maintenance is over."
	if len(unready) > 0 {
		message += fmt.Sprintf(" Locks are kept until these pods are ready: %s.", inWords(unready))
	}
	if len(unsure) > 0 {
		message += p.staleMessage(unsure)
	}
	return message
}

func (p *planner) staleMessage(pods []string) string {
	trusted := p.trustTime().UTC().Format(time.RFC3339)
	if p.status.Boots.RebootCount > 0 {
		return fmt.Sprintf(" Locks are kept until %s or until these pods have started since the reboot: %s.", trusted, inWords(pods))
	}
	return fmt.Sprintf(" The node has not reported a reboot, so the status of its pods is trusted from %s on. "+
		"If the node is back or does not reboot: %s", trusted, command.Of("kubectl annotate drainrecord %s %s=true", p.Record.Name, v1alpha1.BackAnnotation))
}

func inWords(names []string) string {
	slices.Sort(names)
	return enumerate(slices.Compact(names))
}

func (p *planner) reportReleased() {
	if len(p.Record.Status.Locks) > 0 && len(p.status.Locks) == 0 {
		p.emit(event.LocksReleased(p.Record, fmt.Sprintf("Released all locks of node %s after its maintenance.", p.Record.Name)))
	}
}

// set writes condition Locked. Its transition time changes only with its status.
func (p *planner) set(status metav1.ConditionStatus, reason, message string) {
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
