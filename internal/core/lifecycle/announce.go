package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// tell makes an event of what a condition says.
type tell func(*v1alpha1.Machine, string) event.Event

// announcements are what is told when a condition gets a reason that it did not
// have before.
var announcements = []struct {
	condition, reason string
	tell              tell
}{
	{v1alpha1.ConditionCreatable, v1alpha1.ReasonHookPresent, event.MachineHeldByHooks},
	{v1alpha1.ConditionCreatable, v1alpha1.ReasonNotFound, heldUp(v1alpha1.ReasonNotFound)},
	{v1alpha1.ConditionCreatable, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonAmbiguous, heldUp(v1alpha1.ReasonAmbiguous)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonNotOwned, heldUp(v1alpha1.ReasonNotOwned)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionDeleting, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionDeleting, v1alpha1.ReasonWaitingForPreDrainHook, event.MachineHeldByHooks},
	{v1alpha1.ConditionMachineDrained, v1alpha1.ReasonDrainError, heldUp(v1alpha1.ReasonDrainError)},
	{v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonSkipped, event.MachineDrainSkipped},
	{v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonTimedOut, event.MachineDrainTimedOut},
	{v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonDrained, event.MachineDrainCompleted},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonWaitingForVolumeDetach, event.MachineVolumesAttached},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonSkipped, event.MachineVolumesSkipped},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonTimedOut, event.MachineVolumesTimedOut},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonVolumesDetached, event.MachineVolumesDetached},
	{v1alpha1.ConditionDeleting, v1alpha1.ReasonWaitingForPreTerminateHook, event.MachineHeldByHooks},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonFailed, heldUp(v1alpha1.ReasonFailed)},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonNotOwned, heldUp(v1alpha1.ReasonNotOwned)},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonNotFound, gone(infrastructureStep, event.MachineInfrastructureDeleted)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonFailed, heldUp(v1alpha1.ReasonFailed)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonNotOwned, heldUp(v1alpha1.ReasonNotOwned)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonNotFound, gone(bootstrapStep, event.MachineBootstrapDeleted)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonNotFound, gone(infrastructureStep, event.MachineNodeDeleted)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonTimedOut, event.MachineNodeLeft},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonSkipped, event.MachineNodeLeft},
}

// heldUp warns of what does not pass by itself.
func heldUp(reason string) tell {
	return func(m *v1alpha1.Machine, message string) event.Event { return event.MachineHeldUp(m, reason, message) }
}

// gone tells that something is deleted if it is expected to go since a step has
// begun, and warns of its lack if not. A Node goes with its infrastructure: cloud
// controller managers delete it.
func gone(s step, deleted tell) tell {
	lacking := heldUp(v1alpha1.ReasonNotFound)
	return func(m *v1alpha1.Machine, message string) event.Event {
		if m.Status.Deletion != nil && *s.began(m.Status.Deletion) != nil {
			return deleted(m, message)
		}
		return lacking(m, message)
	}
}

// announce makes events of what is new in the status, each once.
func (p *pass) announce() {
	if p.decision.DrainStarts {
		p.announceDrain()
	}
	for _, a := range announcements {
		if a.condition == v1alpha1.ConditionCreatable && (p.founded() || p.deleting()) {
			continue // Nothing is held up there any more.
		}
		c := meta.FindStatusCondition(p.decision.Status.Conditions, a.condition)
		if c != nil && c.Reason == a.reason && p.before(a.condition) != a.reason {
			p.decision.Events = append(p.decision.Events, a.tell(p.Machine, c.Message))
		}
	}
}

// announceDrain tells once that pods begin to leave, and which labels are ignored.
func (p *pass) announceDrain() {
	p.decision.Events = append(p.decision.Events, event.MachineDrainStarted(p.Machine, "Draining "+p.nodeName()+"."))
	if p.decision.Drain == nil {
		return
	}
	for _, problem := range p.decision.Drain.Problems {
		p.decision.Events = append(p.decision.Events, event.DrainLabelIgnored(problem.Pod, problem.Message))
	}
}
