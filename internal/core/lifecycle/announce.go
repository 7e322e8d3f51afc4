package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

type eventFor func(*v1alpha1.Machine, string) event.Event

// announcements are the events of conditions that get a new reason.
var announcements = []struct {
	condition, reason string
	event             eventFor
}{
	{v1alpha1.ConditionCreatable, v1alpha1.ReasonHookPresent, event.MachineHeldByHooks},
	{v1alpha1.ConditionCreatable, v1alpha1.ReasonNotFound, warning(v1alpha1.ReasonNotFound)},
	{v1alpha1.ConditionCreatable, v1alpha1.ReasonUnknown, warning(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonAmbiguous, warning(v1alpha1.ReasonAmbiguous)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonNotOwned, warning(v1alpha1.ReasonNotOwned)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonUnknown, warning(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionDeleting, v1alpha1.ReasonUnknown, warning(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionDeleting, v1alpha1.ReasonWaitingForPreDrainHook, event.MachineHeldByHooks},
	{v1alpha1.ConditionMachineDrained, v1alpha1.ReasonDrainError, warning(v1alpha1.ReasonDrainError)},
	{v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonSkipped, event.MachineDrainSkipped},
	{v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonTimedOut, event.MachineDrainTimedOut},
	{v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonDrained, event.MachineDrainCompleted},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonUnknown, warning(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonWaitingForVolumeDetach, event.MachineVolumesAttached},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonSkipped, event.MachineVolumesSkipped},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonTimedOut, event.MachineVolumesTimedOut},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonVolumesDetached, event.MachineVolumesDetached},
	{v1alpha1.ConditionDeleting, v1alpha1.ReasonWaitingForPreTerminateHook, event.MachineHeldByHooks},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonFailed, warning(v1alpha1.ReasonFailed)},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonNotOwned, warning(v1alpha1.ReasonNotOwned)},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonUnknown, warning(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonNotFound, gone(infrastructureStep, event.MachineInfrastructureDeleted)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonFailed, warning(v1alpha1.ReasonFailed)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonNotOwned, warning(v1alpha1.ReasonNotOwned)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonUnknown, warning(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonNotFound, gone(bootstrapStep, event.MachineBootstrapDeleted)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonNotFound, gone(infrastructureStep, event.MachineNodeDeleted)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonTimedOut, event.MachineNodeLeft},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonSkipped, event.MachineNodeLeft},
}

// heldUp warns of what does not resolve by itself.
func warning(reason string) eventFor {
	return func(m *v1alpha1.Machine, message string) event.Event { return event.MachineHeldUp(m, reason, message) }
}

// gone reports an expected deletion, and warns of any other.
func gone(s step, deleted eventFor) eventFor {
	lacking := warning(v1alpha1.ReasonNotFound)
	return func(m *v1alpha1.Machine, message string) event.Event {
		if m.Status.Deletion != nil && *s.began(m.Status.Deletion) != nil {
			return deleted(m, message)
		}
		return lacking(m, message)
	}
}

// announce adds the events of new reasons, each once.
func (p *planner) announce() {
	if p.decision.DrainStarts {
		p.announceDrain()
	}
	for _, a := range announcements {
		if a.condition == v1alpha1.ConditionCreatable && (p.founded() || p.deleting()) {
			continue // Nothing is held up there any more.
		}
		c := meta.FindStatusCondition(p.decision.Status.Conditions, a.condition)
		if c != nil && c.Reason == a.reason && p.before(a.condition) != a.reason {
			p.decision.Events = append(p.decision.Events, a.event(p.Machine, c.Message))
		}
	}
}

func (p *planner) announceDrain() {
	p.decision.Events = append(p.decision.Events, event.MachineDrainStarted(p.Machine, "Draining "+p.nodeName()+"."))
	if p.decision.Drain == nil {
		return
	}
	for _, problem := range p.decision.Drain.Problems {
		p.decision.Events = append(p.decision.Events, event.DrainLabelIgnored(problem.Pod, problem.Message))
	}
}
