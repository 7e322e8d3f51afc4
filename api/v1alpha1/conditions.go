package v1alpha1

// Conditions of a NodeMaintenance.
const (
	// ConditionDrained says whether all pods that have to leave have left every selected node.
	// Absent before stage Drain (KEP-4212).
	ConditionDrained = "Drained"
	// ConditionBlocked says whether something delays the maintenance.
	ConditionBlocked = "Blocked"
	// ConditionSucceeded permanently says how a maintenance ended: True with ReasonDrained if all
	// nodes were drained, True with ReasonNotDraining if it was never in Drain, and False with
	// ReasonCancelled if it was completed before, or ReasonDeadlinePassed if its deadline has given
	// nodes back. Absent before Complete.
	ConditionSucceeded = "Succeeded"
	// ConditionReturned says whether the node is back as completeWhen requires. Present from Drain
	// on with a completeWhen, and after Complete if it is True.
	ConditionReturned = "Returned"
)

// Reasons of ConditionReturned. ReasonNotReady, ReasonNodesGone and ReasonClockSkewed are
// others.
const (
	// ReasonReturned, also of ConditionLocked: the node is back.
	ReasonReturned = "Returned"
	// ReasonWaitingForDrain: the node has not been handed over yet.
	ReasonWaitingForDrain = "WaitingForDrain"
	// ReasonWaitingForJob: the Job of its rollout has not succeeded on the node.
	ReasonWaitingForJob = "WaitingForJob"
	// ReasonWaitingForBoot: the node has not booted often enough since its handover.
	ReasonWaitingForBoot = "WaitingForBoot"
	// ReasonWaitingForVersion: the node runs another version than required.
	ReasonWaitingForVersion = "WaitingForVersion"
)

// Conditions of an Evacuation.
const (
	// ConditionEvictionRefused is True while the API server refuses to evict the pod. Its reason
	// is a BlockerType.
	ConditionEvictionRefused = "EvictionRefused"
	// ConditionSurged is Unknown while DeploymentEvacuatorClass waits, with one of the reasons
	// below. It is False with ReasonNotSurged if the pod was not replaced; the message says why.
	// Absent otherwise.
	ConditionSurged = "Surged"
	// ConditionReplacementUnschedulable is True while the replacement of the pod cannot be
	// scheduled; the message is the scheduler's. Absent otherwise.
	ConditionReplacementUnschedulable = "ReplacementUnschedulable"
)

// Reasons of ConditionSurged. ReasonClockSkewed is another: the pod waits for its replacement
// beyond the deadline of its Deployment.
const (
	// ReasonNotSurged: the pod is not replaced.
	ReasonNotSurged = "NotSurged"
	// ReasonWaitingForReplacement: the pod is detached and serves until its replacement is
	// available.
	ReasonWaitingForReplacement = "WaitingForReplacement"
	// ReasonWaitingForMaxSurge: maxSurge of the Deployment currently allows no more pods.
	ReasonWaitingForMaxSurge = "WaitingForMaxSurge"
	// ReasonWaitingForClaims: the volume claims of the Deployment cannot be read.
	ReasonWaitingForClaims = "WaitingForClaims"
)

// ReasonUnschedulable is the reason of ConditionReplacementUnschedulable.
const ReasonUnschedulable = "Unschedulable"

// Conditions of a DrainRecord.
const (
	// ConditionLocked says whether the budgets of the pods that stay are locked: True with
	// ReasonHeld, otherwise False.
	ConditionLocked = "Locked"
)

// Reasons of ConditionLocked. ReasonReturned is another: the node is back and needs its
// locks no more, though its maintenance goes on.
const (
	// ReasonHeld: every required budget is locked.
	ReasonHeld = "Held"
	// ReasonWaitingForBudget: a budget cannot be locked yet; the message says why.
	ReasonWaitingForBudget = "WaitingForBudget"
	// ReasonWaitingForNode: another node that may be away has pods under a required budget; the
	// message names it.
	ReasonWaitingForNode = "WaitingForNode"
	// ReasonBudgetRefused: a budget cannot be written; the message says why.
	ReasonBudgetRefused = "BudgetRefused"
	// ReasonClockSkewed: the clocks of the manager and the API server differ by more than 30
	// seconds, or by an unknown amount. Time-based, irreversible actions are paused.
	ReasonClockSkewed = "ClockSkewed"
	// ReasonLocking: the locks are being taken.
	ReasonLocking = "Locking"
	// ReasonSettling: the locks are taken; earlier evictions are awaited, and the reboot promise
	// is being recorded on the node.
	ReasonSettling = "Settling"
	// ReasonReleasing: the maintenance is over, and pods that stayed are not ready yet.
	ReasonReleasing = "Releasing"
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

// NodeRebootRequired is a node condition of the node's agent. It is True while a sentinel file asks
// for a reboot.
const NodeRebootRequired = "RebootRequired"

// Reasons of NodeRebootRequired.
const (
	// ReasonRebootSentinel: the sentinel file exists.
	ReasonRebootSentinel = "RebootSentinel"
	// ReasonNoRebootSentinel: the sentinel file does not exist.
	ReasonNoRebootSentinel = "NoRebootSentinel"
)

// Reasons of conditions.
const (
	// ReasonNodeMaintenance identifies Ebbtide's node conditions.
	ReasonNodeMaintenance = "EbbtideNodeMaintenance"
	// ReasonDraining: pods are leaving.
	ReasonDraining = "Draining"
	// ReasonBlocked: pods are left and blocked.
	ReasonBlocked = "Blocked"
	// ReasonDrained: all pods that have to leave have left.
	ReasonDrained = "Drained"
	// ReasonNoNodes: the selector matches no node.
	ReasonNoNodes = "NoNodes"
	// ReasonNodesGone: the selector no longer matches any node; the status says whether they were
	// drained.
	ReasonNodesGone = "NodesGone"
	// ReasonCancelled: the maintenance was completed before its nodes were drained.
	ReasonCancelled = "Cancelled"
	// ReasonDeadlinePassed: nodes were not drained at the deadline, and were given back for it.
	ReasonDeadlinePassed = "DeadlinePassed"
	// ReasonNotDraining: the maintenance was completed without stage Drain.
	ReasonNotDraining = "NotDraining"
	// ReasonInvalidSpec: the spec is invalid; the message names the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotBlocked: nothing delays the maintenance.
	ReasonNotBlocked = "NotBlocked"
	// ReasonEvacuatorReturned: an evacuator reports progress again, so the eviction is postponed.
	ReasonEvacuatorReturned = "EvacuatorReturned"
)

// Conditions of a Cluster.
const (
	// ConditionReachable says whether the cluster responds. Unknown with ReasonNotInUse while no
	// Machine needs it, and with ReasonConnecting before the first result.
	ConditionReachable = "Reachable"
)

// Conditions of a Machine (machine-deletion-hooks, machine-deletion-process).
const (
	// ConditionCreatable is False while preCreate hooks pause the Machine.
	ConditionCreatable = "Creatable"
	// ConditionDrainable is False while there are pre-drain hooks.
	ConditionDrainable = "Drainable"
	// ConditionTerminable is False while there are pre-terminate hooks.
	ConditionTerminable = "Terminable"
	// ConditionMachineDrained says whether the drain is complete. Absent before its start. True
	// with ReasonSkipped if there is nothing to drain; False with ReasonTimedOut permanently after
	// a time-out.
	ConditionMachineDrained = "Drained"
	// ConditionDrainingSucceeded lists the remaining pods and why they remain.
	ConditionDrainingSucceeded = "DrainingSucceeded"
	// ConditionVolumeDetachSucceeded lists the remaining volumes.
	ConditionVolumeDetachSucceeded = "VolumeDetachSucceeded"
	// ConditionDeleting names the current step of the deletion and what it waits for. On a
	// Cluster, it lists the Machines that hold it.
	ConditionDeleting = "Deleting"
	// ConditionBootstrapReady says whether the bootstrap data is ready.
	ConditionBootstrapReady = "BootstrapReady"
	// ConditionInfrastructureReady says whether the infrastructure is ready.
	ConditionInfrastructureReady = "InfrastructureReady"
	// ConditionNodeReady says whether the Machine has its Node.
	ConditionNodeReady = "NodeReady"
	// ConditionPaused is True while the Cluster is paused.
	ConditionPaused = "Paused"
)

// Reasons of the conditions of Clusters and Machines.
const (
	// ReasonHookPresent: hooks pause the Machine; the message names them and their owners.
	ReasonHookPresent = "HookPresent"
	// ReasonNoHooks: there are no such hooks.
	ReasonNoHooks = "NoHooks"
	// ReasonDrainError: the drain cannot continue; the message says why.
	ReasonDrainError = "DrainError"
	// ReasonSkipped: skipped; the message says why.
	ReasonSkipped = "Skipped"
	// ReasonTimedOut: the time-out has passed.
	ReasonTimedOut = "TimedOut"
	// ReasonReady: ready.
	ReasonReady = "Ready"
	// ReasonNotReady: not ready yet.
	ReasonNotReady = "NotReady"
	// ReasonFailed: failed permanently; the message is that of the provider.
	ReasonFailed = "Failed"
	// ReasonNotFound: the named object does not exist.
	ReasonNotFound = "NotFound"
	// ReasonUnknown: it could not be read; the message says why.
	ReasonUnknown = "Unknown"
	// ReasonNotOwned: another controller owns it, so it is neither adopted nor deleted.
	ReasonNotOwned = "NotOwned"
	// ReasonAmbiguous: several objects match.
	ReasonAmbiguous = "Ambiguous"
	// ReasonPaused: the Cluster is paused.
	ReasonPaused = "Paused"
	// ReasonReachable: the cluster responds.
	ReasonReachable = "Reachable"
	// ReasonUnreachable: the cluster does not respond, or its kubeconfig cannot be used.
	ReasonUnreachable = "Unreachable"
	// ReasonLimitExceeded: the cluster sends more than allowed; the message has the limit and the
	// time of the next attempt.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonConnecting: the cluster is being connected for the first time.
	ReasonConnecting = "Connecting"
	// ReasonNotInUse: no Machine needs the cluster.
	ReasonNotInUse = "NotInUse"
	// ReasonMachinesLeft: Machines hold the Cluster that is being deleted.
	ReasonMachinesLeft = "MachinesLeft"

	// ReasonWaitingForPreDrainHook and the following are the steps of a deletion.
	ReasonWaitingForPreDrainHook = "WaitingForPreDrainHook"
	// ReasonDrainingNode: pods are leaving the Node.
	ReasonDrainingNode = "DrainingNode"
	// ReasonWaitingForVolumeDetach: volumes are still attached to the Node.
	ReasonWaitingForVolumeDetach = "WaitingForVolumeDetach"
	// ReasonVolumesDetached: no relevant volume is attached to the Node.
	ReasonVolumesDetached = "VolumesDetached"
	// ReasonWaitingForPreTerminateHook: pre-terminate hooks pause the Machine.
	ReasonWaitingForPreTerminateHook = "WaitingForPreTerminateHook"
	// ReasonWaitingForInfrastructureDeletion: the infrastructure still exists.
	ReasonWaitingForInfrastructureDeletion = "WaitingForInfrastructureDeletion"
	// ReasonWaitingForBootstrapDeletion: the bootstrap config still exists.
	ReasonWaitingForBootstrapDeletion = "WaitingForBootstrapDeletion"
	// ReasonDeletingNode: the Node object still exists.
	ReasonDeletingNode = "DeletingNode"
	// ReasonDeletionCompleted: everything is deleted.
	ReasonDeletionCompleted = "DeletionCompleted"
)
