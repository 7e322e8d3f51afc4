package v1alpha1

// Conditions of a NodeMaintenance.
const (
	// ConditionDrained says whether every pod that has to leave has left every
	// selected node. Absent before the Drain stage (KEP-4212).
	ConditionDrained = "Drained"
	// ConditionBlocked says whether something holds the maintenance up.
	ConditionBlocked = "Blocked"
)

// Conditions of an Evacuation.
const (
	// ConditionEvictionRefused is True while the API server refuses to evict the
	// pod. Its reason is a BlockerType.
	ConditionEvictionRefused = "EvictionRefused"
)

// Node conditions that announce a maintenance (KEP-5683). They are written
// best effort, with ReasonNodeMaintenance, and never over somebody else's.
const (
	// NodeMaintenancePlanned announces a maintenance in stage Idle.
	NodeMaintenancePlanned = "MaintenancePlanned"
	// NodeDrainInProgress is True while pods leave the node.
	NodeDrainInProgress = "DrainInProgress"
	// NodeDrained is True when no pod is left that has to leave.
	NodeDrained = "Drained"
	// NodeMaintenanceInProgress is True from Drained until Complete.
	NodeMaintenanceInProgress = "MaintenanceInProgress"
)

// Reasons of conditions.
const (
	// ReasonNodeMaintenance marks the node conditions that are ours.
	ReasonNodeMaintenance = "EbbtideNodeMaintenance"
	// ReasonDraining: pods are still leaving.
	ReasonDraining = "Draining"
	// ReasonBlocked: pods are left and something holds them.
	ReasonBlocked = "Blocked"
	// ReasonDrained: every pod that has to leave has left.
	ReasonDrained = "Drained"
	// ReasonNoNodes: the selector matches no node.
	ReasonNoNodes = "NoNodes"
	// ReasonInvalidSpec: the spec cannot be understood; the message names the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotBlocked: nothing holds the maintenance up.
	ReasonNotBlocked = "NotBlocked"
	// ReasonEvacuatorReturned: an evacuator reports progress again, so the
	// refused eviction is put off.
	ReasonEvacuatorReturned = "EvacuatorReturned"
)
