package event

import "ebbtide.dev/ebbtide/api/v1alpha1"

// Events on Machines, with the message of the decision.
var (
	MachineHeldByHooks           = normal(v1alpha1.EventHeldByHooks, "").onMachine
	MachineDrainStarted          = normal(v1alpha1.EventDrainStarted, "").onMachine
	MachineDrainCompleted        = normal(v1alpha1.EventDrainCompleted, "").onMachine
	MachineDrainTimedOut         = warning(v1alpha1.EventDrainTimedOut, "").onMachine
	MachineDrainSkipped          = normal(v1alpha1.EventDrainSkipped, "").onMachine
	MachineVolumesAttached       = normal(v1alpha1.EventVolumesAttached, "").onMachine
	MachineVolumesDetached       = normal(v1alpha1.EventVolumesDetached, "").onMachine
	MachineVolumesTimedOut       = warning(v1alpha1.EventVolumeDetachTimedOut, "").onMachine
	MachineVolumesSkipped        = normal(v1alpha1.EventVolumeDetachSkipped, "").onMachine
	MachineInfrastructureDeleted = normal(v1alpha1.EventInfrastructureDeleted, "").onMachine
	MachineBootstrapDeleted      = normal(v1alpha1.EventBootstrapDeleted, "").onMachine
	MachineNodeDeleted           = normal(v1alpha1.EventNodeDeleted, "").onMachine
	MachineNodeLeft              = warning(v1alpha1.EventNodeLeft, "").onMachine
)

// MachineHeldUp warns that a Machine waits for help, with the reason of its condition.
func MachineHeldUp(m *v1alpha1.Machine, reason, message string) Event {
	return warning(reason, "").onMachine(m, message)
}
