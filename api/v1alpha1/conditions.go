package v1alpha1

// Conditions of a NodeMaintenance.
const (
	// ConditionDrained says whether every pod that has to leave has left every
	// selected node. Absent before the Drain stage (KEP-4212).
	ConditionDrained = "Drained"
	// ConditionBlocked says whether something holds the maintenance up.
	ConditionBlocked = "Blocked"
	// ConditionSucceeded says for ever how a maintenance ended: True with ReasonDrained
	// if it had drained all of its nodes, or with ReasonNotDraining if it was never in
	// Drain; False with ReasonCancelled if it was completed before. Absent before Complete.
	ConditionSucceeded = "Succeeded"
	// ConditionReturned says whether the node has come back as completeWhen wants it. It is
	// there from Drain on if there is a completeWhen, and stays after Complete if it is True.
	ConditionReturned = "Returned"
)

// Reasons of ConditionReturned. ReasonNotReady, ReasonNodesGone and ReasonClockSkewed are
// others.
const (
	// ReasonReturned, also of ConditionLocked: the node is back.
	ReasonReturned = "Returned"
	// ReasonWaitingForDrain: the node has not been handed over yet, so that nothing counts.
	ReasonWaitingForDrain = "WaitingForDrain"
	// ReasonWaitingForBoot: the node has not booted as often as is wanted since it was
	// handed over.
	ReasonWaitingForBoot = "WaitingForBoot"
	// ReasonWaitingForVersion: the node runs another version than is wanted.
	ReasonWaitingForVersion = "WaitingForVersion"
)

// Conditions of an Evacuation.
const (
	// ConditionEvictionRefused is True while the API server refuses to evict the
	// pod. Its reason is a BlockerType.
	ConditionEvictionRefused = "EvictionRefused"
	// ConditionSurged is Unknown while DeploymentEvacuatorClass reports that the pod waits; the
	// reason is one of those below. It is False, with ReasonNotSurged, once that has not replaced
	// the pod; the message says why. It is absent otherwise.
	ConditionSurged = "Surged"
	// ConditionReplacementUnschedulable is True while the scheduler finds no node for the pod
	// that DeploymentEvacuatorClass waits for; the message has its words. It is absent otherwise.
	ConditionReplacementUnschedulable = "ReplacementUnschedulable"
	// ConditionEvictionRequested is True while the responders of the pod
	// (spec.evictionResponders) are asked to move it, by an EvictionRequest of
	// EvacuationRequester; the message says whose turn it is. It is False, for good, when the
	// evacuation goes on itself; the reason is one of those below. It is absent from pods
	// without responders, and where EvictionRequests are not served.
	ConditionEvictionRequested = "EvictionRequested"
)

// Reasons of ConditionSurged. ReasonClockSkewed is another: the pod waits for its replacement
// beyond the deadline of its Deployment.
const (
	// ReasonNotSurged: nothing replaces the pod.
	ReasonNotSurged = "NotSurged"
	// ReasonWaitingForReplacement: the pod is detached and serves until it is replaced.
	ReasonWaitingForReplacement = "WaitingForReplacement"
	// ReasonWaitingForMaxSurge: maxSurge of the Deployment allows no more pods now.
	ReasonWaitingForMaxSurge = "WaitingForMaxSurge"
	// ReasonWaitingForClaims: the volume claims of the Deployment cannot be read.
	ReasonWaitingForClaims = "WaitingForClaims"
)

// ReasonUnschedulable is that of ConditionReplacementUnschedulable.
const ReasonUnschedulable = "Unschedulable"

// Reasons of ConditionEvictionRequested.
const (
	// ReasonResponderActive: a responder of the pod has its turn.
	ReasonResponderActive = "ResponderActive"
	// ReasonRespondersDone: all responders of the pod have had their turns.
	ReasonRespondersDone = "RespondersDone"
	// ReasonRequestUnanswered: nobody answers EvictionRequests.
	ReasonRequestUnanswered = "Unanswered"
	// ReasonRequestFailed: the EvictionRequest has failed; the message says why.
	ReasonRequestFailed = "RequestFailed"
	// ReasonRequestNameTaken: another EvictionRequest has the name of this one.
	ReasonRequestNameTaken = "NameTaken"
	// ReasonRequestsNotServed: EvictionRequests are served no more, or are not answered.
	ReasonRequestsNotServed = "NotServed"
)

// Conditions of a DrainRecord.
const (
	// ConditionLocked says whether the budgets of the pods that stay are locked:
	// True with ReasonHeld, else False.
	ConditionLocked = "Locked"
)

// Reasons of ConditionLocked. ReasonReturned is another: the node is back and needs its
// locks no more, though its maintenance goes on.
const (
	// ReasonHeld: every budget that is needed is locked.
	ReasonHeld = "Held"
	// ReasonWaitingForBudget: a budget cannot be locked now; the message says why.
	ReasonWaitingForBudget = "WaitingForBudget"
	// ReasonWaitingForNode: another node that may be away has pods under a budget that is
	// to be locked; the message names it.
	ReasonWaitingForNode = "WaitingForNode"
	// ReasonBudgetRefused: a budget cannot be written, so that it cannot be locked;
	// the message says why.
	ReasonBudgetRefused = "BudgetRefused"
	// ReasonClockSkewed: the clocks of the manager and of the API server differ by more than
	// 30 seconds, or by an unknown amount, so that nothing that cannot be undone is done
	// because of the time. The event ClockSkewed says how far.
	ReasonClockSkewed = "ClockSkewed"
	// ReasonLocking: the locks are being taken, one after the other.
	ReasonLocking = "Locking"
	// ReasonSettling: the locks are taken; evictions that began before them are
	// waited for, and the promise is recorded on the node.
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
	// ReasonNodesGone: the selector matches none of its nodes any more; the status says
	// whether they had been drained.
	ReasonNodesGone = "NodesGone"
	// ReasonCancelled: the maintenance was completed before its nodes were drained.
	ReasonCancelled = "Cancelled"
	// ReasonNotDraining: the maintenance was completed without stage Drain.
	ReasonNotDraining = "NotDraining"
	// ReasonInvalidSpec: the spec cannot be understood; the message names the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotBlocked: nothing holds the maintenance up.
	ReasonNotBlocked = "NotBlocked"
	// ReasonEvacuatorReturned: an evacuator reports progress again, so the
	// refused eviction is put off.
	ReasonEvacuatorReturned = "EvacuatorReturned"
)

// Conditions of a Cluster.
const (
	// ConditionReachable says whether the cluster answers: Unknown with
	// ReasonNotInUse while none of its Machines needs it, and with
	// ReasonConnecting until it has first been read or failed to be.
	ConditionReachable = "Reachable"
)

// Conditions of a Machine (machine-deletion-hooks, machine-deletion-process).
const (
	// ConditionCreatable is False while preCreate hooks hold the Machine.
	ConditionCreatable = "Creatable"
	// ConditionDrainable is False while it has pre-drain hooks.
	ConditionDrainable = "Drainable"
	// ConditionTerminable is False while it has pre-terminate hooks.
	ConditionTerminable = "Terminable"
	// ConditionMachineDrained says whether the drain is through; absent before its
	// first attempt. True with ReasonSkipped if there is nothing to drain, False with
	// ReasonTimedOut for ever if it was given up.
	ConditionMachineDrained = "Drained"
	// ConditionDrainingSucceeded says which pods are left and why.
	ConditionDrainingSucceeded = "DrainingSucceeded"
	// ConditionVolumeDetachSucceeded says which volumes are left.
	ConditionVolumeDetachSucceeded = "VolumeDetachSucceeded"
	// ConditionDeleting says in which step the deletion is and what it waits for.
	// On a Cluster it says which Machines hold it.
	ConditionDeleting = "Deleting"
	// ConditionBootstrapReady says whether the bootstrap data is there.
	ConditionBootstrapReady = "BootstrapReady"
	// ConditionInfrastructureReady says whether the infrastructure is there.
	ConditionInfrastructureReady = "InfrastructureReady"
	// ConditionNodeReady says whether the Machine has its Node.
	ConditionNodeReady = "NodeReady"
	// ConditionPaused is True while the Cluster is paused.
	ConditionPaused = "Paused"
)

// Reasons of the conditions of Clusters and Machines.
const (
	// ReasonHookPresent: hooks hold the Machine; the message names them and their owners.
	ReasonHookPresent = "HookPresent"
	// ReasonNoHooks: there is no such hook.
	ReasonNoHooks = "NoHooks"
	// ReasonDrainError: the drain could not go on; the message says why.
	ReasonDrainError = "DrainError"
	// ReasonSkipped: left out; the message says why.
	ReasonSkipped = "Skipped"
	// ReasonTimedOut: given up because its time was over.
	ReasonTimedOut = "TimedOut"
	// ReasonReady: it is there.
	ReasonReady = "Ready"
	// ReasonNotReady: it is not there yet.
	ReasonNotReady = "NotReady"
	// ReasonFailed: it failed for good; the message has its own words.
	ReasonFailed = "Failed"
	// ReasonNotFound: the object that is named does not exist.
	ReasonNotFound = "NotFound"
	// ReasonUnknown: it could not be read; the message says why. Nothing is
	// concluded from it.
	ReasonUnknown = "Unknown"
	// ReasonNotOwned: somebody else controls it, so it is neither adopted nor deleted.
	ReasonNotOwned = "NotOwned"
	// ReasonAmbiguous: several are meant, and nobody knows which is the right one.
	ReasonAmbiguous = "Ambiguous"
	// ReasonPaused: the Cluster is paused.
	ReasonPaused = "Paused"
	// ReasonReachable: the cluster answers.
	ReasonReachable = "Reachable"
	// ReasonUnreachable: the cluster does not answer, or its kubeconfig cannot be used.
	ReasonUnreachable = "Unreachable"
	// ReasonLimitExceeded: the cluster answers with more than is taken of it; the
	// message says what the bound is and when it is tried again.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonConnecting: the cluster is being connected for the first time.
	ReasonConnecting = "Connecting"
	// ReasonNotInUse: nobody needs the cluster now.
	ReasonNotInUse = "NotInUse"
	// ReasonMachinesLeft: Machines hold the Cluster that is being deleted.
	ReasonMachinesLeft = "MachinesLeft"

	// ReasonWaitingForPreDrainHook and those below are the steps of a deletion.
	ReasonWaitingForPreDrainHook = "WaitingForPreDrainHook"
	// ReasonDrainingNode: pods leave the Node.
	ReasonDrainingNode = "DrainingNode"
	// ReasonWaitingForVolumeDetach: volumes are still attached to the Node.
	ReasonWaitingForVolumeDetach = "WaitingForVolumeDetach"
	// ReasonVolumesDetached: no volume is attached to the Node that matters.
	ReasonVolumesDetached = "VolumesDetached"
	// ReasonWaitingForPreTerminateHook: pre-terminate hooks hold the Machine.
	ReasonWaitingForPreTerminateHook = "WaitingForPreTerminateHook"
	// ReasonWaitingForInfrastructureDeletion: the infrastructure is still there.
	ReasonWaitingForInfrastructureDeletion = "WaitingForInfrastructureDeletion"
	// ReasonWaitingForBootstrapDeletion: the bootstrap config is still there.
	ReasonWaitingForBootstrapDeletion = "WaitingForBootstrapDeletion"
	// ReasonDeletingNode: the Node object is still there.
	ReasonDeletingNode = "DeletingNode"
	// ReasonDeletionCompleted: nothing is left.
	ReasonDeletionCompleted = "DeletionCompleted"
)
