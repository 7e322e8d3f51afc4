package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// tell makes an event of what a condition says.
type tell func(*v1alpha1.Machine, string) event.Event

// news is what is told when a condition gets a reason that it did not have.
type news struct {
	condition, reason string
	tell              tell
}

var announcements = []news{
	{v1alpha1.ConditionCreatable, v1alpha1.ReasonHookPresent, event.MachineHeldByHooks},
	{v1alpha1.ConditionCreatable, v1alpha1.ReasonNotFound, heldUp(v1alpha1.ReasonNotFound)},
	{v1alpha1.ConditionCreatable, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionDeleting, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionDeleting, v1alpha1.ReasonWaitingForPreDrainHook, event.MachineHeldByHooks},
	{v1alpha1.ConditionDeleting, v1alpha1.ReasonWaitingForPreTerminateHook, event.MachineHeldByHooks},
	{v1alpha1.ConditionMachineDrained, v1alpha1.ReasonDrainError, heldUp(v1alpha1.ReasonDrainError)},
	{v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonSkipped, event.MachineDrainSkipped},
	{v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonTimedOut, event.MachineDrainTimedOut},
	{v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonDrained, event.MachineDrainCompleted},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonSkipped, event.MachineVolumesSkipped},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonTimedOut, event.MachineVolumesTimedOut},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonVolumesDetached, event.MachineVolumesDetached},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonWaitingForVolumeDetach, event.MachineVolumesAttached},
	{v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonFailed, heldUp(v1alpha1.ReasonFailed)},
	{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonNotOwned, heldUp(v1alpha1.ReasonNotOwned)},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonFailed, heldUp(v1alpha1.ReasonFailed)},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonNotOwned, heldUp(v1alpha1.ReasonNotOwned)},
	{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonAmbiguous, heldUp(v1alpha1.ReasonAmbiguous)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonUnknown, heldUp(v1alpha1.ReasonUnknown)},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonTimedOut, event.MachineNodeLeft},
	{v1alpha1.ConditionNodeReady, v1alpha1.ReasonSkipped, event.MachineNodeLeft},
}

func heldUp(reason string) tell {
	return func(m *v1alpha1.Machine, message string) event.Event { return event.MachineHeldUp(m, reason, message) }
}

// announce makes events of what is new in the status, each once.
func (p *pass) announce() {
	if p.decision.DrainStarts {
		p.announceDrain()
	}
	for _, n := range append(announcements, p.missing()...) {
		c := meta.FindStatusCondition(p.decision.Status.Conditions, n.condition)
		if c != nil && c.Reason == n.reason && p.before(n.condition) != n.reason {
			p.decision.Events = append(p.decision.Events, n.tell(p.Machine, c.Message))
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

// missing is what is told of something that does not exist: it is deleted if we
// have begun to delete it, and else it is lacking.
func (p *pass) missing() []news {
	if !p.deleting() {
		return []news{
			{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonNotFound, heldUp(v1alpha1.ReasonNotFound)},
			{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonNotFound, heldUp(v1alpha1.ReasonNotFound)},
			{v1alpha1.ConditionNodeReady, v1alpha1.ReasonNotFound, heldUp(v1alpha1.ReasonNotFound)},
		}
	}
	var gone []news
	if p.began().InfrastructureDeletionStartTime != nil {
		gone = append(gone, news{v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonNotFound, event.MachineInfrastructureDeleted})
	}
	if p.began().BootstrapDeletionStartTime != nil {
		gone = append(gone, news{v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonNotFound, event.MachineBootstrapDeleted})
	}
	if p.began().NodeDeletionStartTime != nil {
		gone = append(gone, news{v1alpha1.ConditionNodeReady, v1alpha1.ReasonNotFound, event.MachineNodeDeleted})
	}
	return gone
}
