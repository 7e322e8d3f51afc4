package v1alpha1

// Reasons of events on NodeMaintenances and, as far as one node is concerned, on Nodes.
const (
	// EventStageStarted: the controller started a stage.
	EventStageStarted = "StageStarted"
	// EventDrained: all nodes are drained.
	EventDrained = "Drained"
	// EventCompletedByItself: the node is back as completeWhen requires, and the stage was set to
	// Complete.
	EventCompletedByItself = "CompletedByItself"
	// EventNoNodes warns that the selector matches no node.
	EventNoNodes = ReasonNoNodes
	// EventFastForwarded warns that the drain plan is not followed on a node, because another
	// maintenance is further ahead there (KEP-4212).
	EventFastForwarded = "FastForwarded"
	// EventBlocked warns that a maintenance is blocked: on it, on at most 10 of its nodes when the
	// cause changes, and on a pod that does not leave.
	EventBlocked = ReasonBlocked
	// EventInvalidSpec warns that the spec is invalid and ignored.
	EventInvalidSpec = ReasonInvalidSpec
	// EventDecisionFailed warns that a defect of Ebbtide prevents decisions about the maintenance
	// and those that share its nodes.
	EventDecisionFailed = "DecisionFailed"
	// EventWriteRefused warns that the API server refuses writes to the maintenance, so its status
	// is outdated.
	EventWriteRefused = "WriteRefused"
	// EventScaleDownAllowed: a user lets an autoscaler remove a node under maintenance.
	EventScaleDownAllowed = "ScaleDownAllowed"
	// EventForeignUncordon warns that someone uncordoned a node during its maintenance. Also on
	// the Node.
	EventForeignUncordon = string(BlockerForeignUncordon)
	// EventNodeCordoned, on a Node: it was cordoned.
	EventNodeCordoned = "NodeCordoned"
	// EventNodeDrained, on a Node: it is drained.
	EventNodeDrained = "NodeDrained"
	// EventNodeRestored, on a Node: the last maintenance restored it.
	EventNodeRestored = "NodeRestored"
	// EventNodeUncordoned, on a Node: a completed maintenance uncordoned it although it had not
	// cordoned it.
	EventNodeUncordoned = "NodeUncordoned"
	// EventNodeLeftCordoned warns, on a Node, that it stays cordoned because its earlier state is
	// unknown.
	EventNodeLeftCordoned = "NodeLeftCordoned"
	// EventLedgerUnreadable warns, on a Node, that its CordonAnnotation cannot be parsed.
	EventLedgerUnreadable = "LedgerUnreadable"
	// EventCancellationForbidden warns, on a Node and its ended NodeMaintenance, that evacuations
	// continue because their evacuators forbid cancellation.
	EventCancellationForbidden = "CancellationForbidden"
	// EventNodeAgentDown warns, on a Node, that its agent is silent while static pods are
	// to go or to come back.
	EventNodeAgentDown = string(BlockerNodeAgentDown)
	// EventConditionsRefused warns, on a Node, that its maintenance conditions could not be
	// written.
	EventConditionsRefused = "ConditionsRefused"
)

// Reasons of events on pods.
const (
	// EventDrainLabelIgnored warns that the value of DrainLabel is unknown.
	EventDrainLabelIgnored = "DrainLabelIgnored"
	// EventOnUpgradeLabelIgnored warns that a pod leaves because the value of its OnUpgradeLabel
	// is unknown.
	EventOnUpgradeLabelIgnored = "OnUpgradeLabelIgnored"
	// EventTolerationTooShort warns that a pod that should stay leaves, because it would be
	// deleted while its node is away.
	EventTolerationTooShort = "TolerationTooShort"
	// EventTooManyBudgets warns that a pod that should stay leaves, because it or its node has
	// more budgets than can be locked.
	EventTooManyBudgets = "TooManyBudgets"
	// EventEvictionRequestUnanswered warns that no controller answered the EvictionRequest of a
	// pod, which is evacuated without its responders.
	EventEvictionRequestUnanswered = "EvictionRequestUnanswered"
	// EventEvictionRequestNameTaken warns that a pod is evacuated without its responders, because
	// another object has the name of its EvictionRequest.
	EventEvictionRequestNameTaken = "EvictionRequestNameTaken"
	// EventPodDetached: the pod was taken out of its ReplicaSet to be replaced.
	EventPodDetached = "PodDetached"
	// EventPodGivenBack: a detached pod can return to its ReplicaSet.
	EventPodGivenBack = "PodGivenBack"
	// EventDetachedPodDeleted: a detached pod was deleted because no ReplicaSet could take it
	// back.
	EventDetachedPodDeleted = "DetachedPodDeleted"
	// EventDaemonSetPodReleased: a DaemonSet pod may start on its node again.
	EventDaemonSetPodReleased = "DaemonSetPodReleased"
	// EventPodDeletedPastBudget warns, on the pod and its NodeMaintenance, that it was deleted
	// although its budget did not allow it.
	EventPodDeletedPastBudget = "PodDeletedPastBudget"
)

// Reasons of events on Evacuations.
const (
	// EventEvacuatorActivated: the first evacuator is active.
	EventEvacuatorActivated = "EvacuatorActivated"
	// EventEvacuatorReplaced warns that an evacuator took over from another one.
	EventEvacuatorReplaced = "EvacuatorReplaced"
	// EventEvacuatorRestarted warns that an evacuator's report was rejected.
	EventEvacuatorRestarted = "EvacuatorRestarted"
	// EventEvacuatorReturned: an evacuator reported again and postponed the eviction.
	EventEvacuatorReturned = ReasonEvacuatorReturned
	// EventEvacuatorsIgnored warns that registrations of evacuators are ignored.
	EventEvacuatorsIgnored = "EvacuatorsIgnored"
	// EventEvictionWithdrawn: no client calls the eviction API for the pod any more.
	EventEvictionWithdrawn = "EvictionWithdrawn"
	// EventPodEvicted: the pod was evicted after its evacuators.
	EventPodEvicted = "PodEvicted"
	// EventDaemonSetPodDeleted: a DaemonSet pod was deleted for the maintenance of its node.
	EventDaemonSetPodDeleted = "DaemonSetPodDeleted"
	// EventNotSurged warns that a pod is not replaced before it leaves.
	EventNotSurged = ReasonNotSurged
	// EventEvacuationGoesOn: the Eviction was withdrawn, but an evacuator forbids cancellation of
	// the Evacuation.
	EventEvacuationGoesOn = "EvacuationGoesOn"
)

// Reasons of events about locks. The first seven are on the NodeMaintenance and on
// the Node, the others on the PodDisruptionBudget.
const (
	// EventLocksHeld: all required budgets are locked.
	EventLocksHeld = "LocksHeld"
	// EventLocksReleased: the maintenance holds no more locks.
	EventLocksReleased = "LocksReleased"
	// EventLockLost warns that a lock was removed or replaced.
	EventLockLost = "LockLost"
	// EventPodsStayAfterAll: the lock that prevented another one ended before the pods had left.
	EventPodsStayAfterAll = "PodsStayAfterAll"
	// EventLockTimedOut warns that a budget could not be locked in time.
	EventLockTimedOut = "LockTimedOut"
	// EventNodeReturned: the node is back, and its locks are free.
	EventNodeReturned = "NodeReturned"
	// EventLockRanOut warns that a lock ended before its pods were ready again.
	EventLockRanOut = "LockRanOut"
	// EventLockUnreadable warns that a lock cannot be parsed.
	EventLockUnreadable = "LockUnreadable"
	// EventEvictionControllerActive, on the leader's Lease: Ebbtide is now the controller of
	// EvictionRequests.
	EventEvictionControllerActive = "EvictionControllerActive"
	// EventEvictionControllerAside, on the leader's Lease: another controller answers
	// EvictionRequests, so Ebbtide does not.
	EventEvictionControllerAside = "EvictionControllerAside"
	// EventRightsMissing warns, on the leader's Lease, that a part of the manager does not run
	// because rights are missing.
	EventRightsMissing = "RightsMissing"
	// EventClockSkewed warns, on the leader's Lease, that time-based, irreversible actions are
	// paused because the manager's clock is not trusted.
	EventClockSkewed = "ClockSkewed"
	// EventStrayLockRemoved warns that the lock of an unknown drain was removed.
	EventStrayLockRemoved = "StrayLockRemoved"
	// EventLockEnded: the lock expired and was removed.
	EventLockEnded = "LockEnded"
)

// Reasons of events on Machines. A warning about what does not pass by itself has
// the reason of the condition that says it.
const (
	// EventHeldByHooks: the Machine waits for hooks.
	EventHeldByHooks = "HeldByHooks"
	// EventDrainStarted: the drain of the Node started.
	EventDrainStarted = "DrainStarted"
	// EventDrainCompleted: all pods that have to leave have left.
	EventDrainCompleted = "DrainCompleted"
	// EventDrainTimedOut warns about pods that are deleted with the Machine.
	EventDrainTimedOut = "DrainTimedOut"
	// EventDrainSkipped: the Node is not drained.
	EventDrainSkipped = "DrainSkipped"
	// EventVolumesAttached: the Machine waits for volumes.
	EventVolumesAttached = "VolumesAttached"
	// EventVolumesDetached: no relevant volume is attached.
	EventVolumesDetached = ReasonVolumesDetached
	// EventVolumeDetachTimedOut warns about volumes that were not detached in time.
	EventVolumeDetachTimedOut = "VolumeDetachTimedOut"
	// EventVolumeDetachSkipped: volumes are not awaited.
	EventVolumeDetachSkipped = "VolumeDetachSkipped"
	// EventInfrastructureDeleted: the infrastructure is deleted.
	EventInfrastructureDeleted = "InfrastructureDeleted"
	// EventBootstrapDeleted: the bootstrap config is deleted.
	EventBootstrapDeleted = "BootstrapDeleted"
	// EventNodeDeleted: the Node is deleted.
	EventNodeDeleted = "NodeDeleted"
	// EventNodeLeft warns that the Node stays in the cluster.
	EventNodeLeft = "NodeLeft"
)

// Reasons of events of the node agent, on its Node.
const (
	// EventStaticPodHeld: the manifest of a static pod was renamed, so the kubelet stops the pod.
	EventStaticPodHeld = "StaticPodHeld"
	// EventStaticPodRestored: the manifest of a static pod is back.
	EventStaticPodRestored = "StaticPodRestored"
	// EventManifestReplaced warns that a renamed manifest was written again. The new file is
	// renamed instead.
	EventManifestReplaced = "ManifestReplaced"
	// EventManifestSuperseded warns that a renamed manifest was written again. The new file stays,
	// and so does the renamed one.
	EventManifestSuperseded = "ManifestSuperseded"
	// EventManifestGone warns that a renamed manifest was moved or removed by someone else.
	EventManifestGone = "ManifestGone"
)

// Reasons of events on the Machines of other controllers, for which Ebbtide drains.
const (
	// EventBridgeWaiting: the drain waits for other hooks, or for what it needs to know.
	EventBridgeWaiting = "BridgeWaiting"
	// EventBridgeDraining: the node of the Machine is being drained.
	EventBridgeDraining = "BridgeDraining"
	// EventBridgeBlocked warns that a drain through a kubeconfig needs help, for example a missing
	// right.
	EventBridgeBlocked = "BridgeBlocked"
	// EventBridgeDone: the node is drained, and Ebbtide's hook is removed.
	EventBridgeDone = "BridgeDone"
	// EventBridgeSkipped: Ebbtide does not drain the node, and its hook is removed.
	EventBridgeSkipped = "BridgeSkipped"
	// EventBridgeGivenUp warns that the drain took longer than the Machine allows, and that the
	// hook was removed.
	EventBridgeGivenUp = "BridgeGivenUp"
)

// EventNodeRebooting is the reason of an event on a Node: its agent reboots it for a maintenance.
const EventNodeRebooting = "NodeRebooting"

// Reasons of events on NodeRollouts.
const (
	// EventRolloutNodeStarted: a node is under maintenance.
	EventRolloutNodeStarted = "NodeStarted"
	// EventRolloutMachineDeleted: the machine of a drained node was deleted.
	EventRolloutMachineDeleted = "MachineDeleted"
	// EventRolloutNodeFailed warns that a node failed.
	EventRolloutNodeFailed = "NodeFailed"
	// EventRolloutComplete: every node is done, failed or skipped.
	EventRolloutComplete = "RolloutComplete"
)
