package v1alpha1

// Reasons of events on NodeMaintenances and, as far as one node is concerned, on Nodes.
const (
	// EventStageStarted: the controller acts on a new stage.
	EventStageStarted = "StageStarted"
	// EventDrained: no pod is left on any node that has to leave.
	EventDrained = "Drained"
	// EventCompletedByItself: the node has come back as completeWhen wants it, and stage
	// Complete was set.
	EventCompletedByItself = "CompletedByItself"
	// EventNoNodes warns that the selector matches no node.
	EventNoNodes = ReasonNoNodes
	// EventFastForwarded warns that the drain plan is not kept on a node, because
	// the drain of another maintenance has come further there (KEP-4212).
	EventFastForwarded = "FastForwarded"
	// EventBlocked warns that something holds a maintenance up: on it and on its nodes when the
	// cause changes, and on a pod that does not leave. One decision tells it of at most 10 nodes.
	EventBlocked = ReasonBlocked
	// EventInvalidSpec warns that the spec cannot be understood and is not acted on.
	EventInvalidSpec = ReasonInvalidSpec
	// EventDecisionFailed warns that a defect of Ebbtide keeps it from deciding about the
	// maintenance and those that share nodes with it.
	EventDecisionFailed = "DecisionFailed"
	// EventWriteRefused warns that the API server refuses a write to the maintenance
	// itself, so that its status is old and its nodes may wait.
	EventWriteRefused = "WriteRefused"
	// EventScaleDownAllowed tells that somebody lets an autoscaler remove a node that is under
	// maintenance.
	EventScaleDownAllowed = "ScaleDownAllowed"
	// EventForeignUncordon warns that somebody made a node schedulable during its
	// maintenance. It is on the Node, too.
	EventForeignUncordon = string(BlockerForeignUncordon)
	// EventNodeCordoned, on a Node: it was made unschedulable.
	EventNodeCordoned = "NodeCordoned"
	// EventNodeDrained, on a Node: all pods have left that a maintenance waited for.
	EventNodeDrained = "NodeDrained"
	// EventNodeRestored, on a Node: the last maintenance has given it back as it was.
	EventNodeRestored = "NodeRestored"
	// EventNodeUncordoned, on a Node: a completed maintenance made it schedulable,
	// which had not cordoned it.
	EventNodeUncordoned = "NodeUncordoned"
	// EventNodeLeftCordoned warns, on a Node, that it stays cordoned because what it
	// was before the maintenance is unknown.
	EventNodeLeftCordoned = "NodeLeftCordoned"
	// EventLedgerUnreadable warns, on a Node, that its CordonAnnotation cannot be read.
	EventLedgerUnreadable = "LedgerUnreadable"
	// EventCancellationForbidden warns, on a Node and on its NodeMaintenance that ends, that
	// evacuations go on although no maintenance asks for them, because their evacuators
	// forbid to cancel them.
	EventCancellationForbidden = "CancellationForbidden"
	// EventNodeAgentDown warns, on a Node, that its agent is silent while static pods are
	// to go or to come back.
	EventNodeAgentDown = string(BlockerNodeAgentDown)
	// EventConditionsRefused warns, on a Node, that its maintenance conditions could
	// not be published.
	EventConditionsRefused = "ConditionsRefused"
)

// Reasons of events on pods.
const (
	// EventDrainLabelIgnored warns that the DrainLabel is not understood.
	EventDrainLabelIgnored = "DrainLabelIgnored"
	// EventOnUpgradeLabelIgnored warns that a pod leaves a node that comes back,
	// because its OnUpgradeLabel is not understood.
	EventOnUpgradeLabelIgnored = "OnUpgradeLabelIgnored"
	// EventTolerationTooShort warns that a pod that asks to stay leaves, because it
	// would be deleted while its node is away.
	EventTolerationTooShort = "TolerationTooShort"
	// EventTooManyBudgets warns that a pod that asks to stay leaves, because it, or
	// its node, has more budgets than can be locked.
	EventTooManyBudgets = "TooManyBudgets"
	// EventEvictionRequestUnanswered warns that nobody has answered the EvictionRequest of a
	// pod, which is evacuated without its evictionResponders.
	EventEvictionRequestUnanswered = "EvictionRequestUnanswered"
	// EventEvictionRequestNameTaken warns that a pod is evacuated without its
	// evictionResponders, because its EvictionRequest would have the name of another one.
	EventEvictionRequestNameTaken = "EvictionRequestNameTaken"
	// EventEvictionRequestRefused warns that the EvictionRequest cannot be made that the
	// responders of a pod are to be asked by, so that the pod waits.
	EventEvictionRequestRefused = "EvictionRequestRefused"
	// EventPodDetached: the pod was taken out of its ReplicaSet to be replaced.
	EventPodDetached = "PodDetached"
	// EventPodGivenBack: a detached pod may go back to its ReplicaSet.
	EventPodGivenBack = "PodGivenBack"
	// EventDetachedPodDeleted: a detached pod was deleted, because it could go back
	// to no ReplicaSet.
	EventDetachedPodDeleted = "DetachedPodDeleted"
	// EventDaemonSetPodReleased: a pod that was held back for the maintenance of its
	// node may go there now.
	EventDaemonSetPodReleased = "DaemonSetPodReleased"
	// EventPodDeletedPastBudget warns, on the pod and on its NodeMaintenance, that it
	// was deleted although its budget did not allow it. It is for the audit.
	EventPodDeletedPastBudget = "PodDeletedPastBudget"
)

// Reasons of events on Evacuations.
const (
	// EventEvacuatorActivated: the first evacuator got its turn.
	EventEvacuatorActivated = "EvacuatorActivated"
	// EventEvacuatorReplaced warns that an evacuator took over from another.
	EventEvacuatorReplaced = "EvacuatorReplaced"
	// EventEvacuatorRestarted warns that an evacuator's report was not believed.
	EventEvacuatorRestarted = "EvacuatorRestarted"
	// EventEvacuatorReturned: an evacuator came back and put off the eviction.
	EventEvacuatorReturned = ReasonEvacuatorReturned
	// EventEvacuatorsIgnored warns of registrations of evacuators that are left out.
	EventEvacuatorsIgnored = "EvacuatorsIgnored"
	// EventEvictionWithdrawn: nobody calls the eviction API for the pod any more.
	EventEvictionWithdrawn = "EvictionWithdrawn"
	// EventPodEvicted: the pod was evicted after its evacuators.
	EventPodEvicted = "PodEvicted"
	// EventDaemonSetPodDeleted: a DaemonSet pod was deleted for the maintenance of
	// its node.
	EventDaemonSetPodDeleted = "DaemonSetPodDeleted"
	// EventNotSurged warns that a pod is not replaced before it leaves.
	EventNotSurged = ReasonNotSurged
	// EventEvacuationGoesOn: nobody asks for the Eviction any more that the Evacuation is
	// for, but an evacuator has forbidden to cancel it.
	EventEvacuationGoesOn = "EvacuationGoesOn"
)

// Reasons of events about locks. The first seven are on the NodeMaintenance and on
// the Node, the others on the PodDisruptionBudget.
const (
	// EventLocksHeld: every budget is locked whose pods stay.
	EventLocksHeld = "LocksHeld"
	// EventLocksReleased: the maintenance has no lock any more.
	EventLocksReleased = "LocksReleased"
	// EventLockLost warns that a lock which it had is gone or somebody else's.
	EventLockLost = "LockLost"
	// EventPodsStayAfterAll: the lock that was in the way of a budget is gone before
	// the pods have left for which it was given up.
	EventPodsStayAfterAll = "PodsStayAfterAll"
	// EventLockTimedOut warns that a budget could not be locked in time.
	EventLockTimedOut = "LockTimedOut"
	// EventNodeReturned: the node is back, and its locks are free for others.
	EventNodeReturned = "NodeReturned"
	// EventLockRanOut warns that a lock has ended before its pods were ready again.
	EventLockRanOut = "LockRanOut"
	// EventLockUnreadable warns that nobody can read the lock.
	EventLockUnreadable = "LockUnreadable"
	// EventEvictionControllerActive tells that Ebbtide is the controller of EvictionRequests
	// from now on, on the Lease of its leader.
	EventEvictionControllerActive = "EvictionControllerActive"
	// EventEvictionControllerAside tells that another controller answers EvictionRequests, so
	// that Ebbtide does not, on the Lease of its leader.
	EventEvictionControllerAside = "EvictionControllerAside"
	// EventRightsMissing warns that a part of the manager does not run because its account lacks
	// rights, on the Lease of its leader.
	EventRightsMissing = "RightsMissing"
	// EventClockSkewed warns that nothing that cannot be undone is done because of the time,
	// since the manager's clock is not trusted, on the Lease of its leader.
	EventClockSkewed = "ClockSkewed"
	// EventStrayLockRemoved warns that the lock of a drain was removed which nobody
	// remembers.
	EventStrayLockRemoved = "StrayLockRemoved"
	// EventLockEnded: the lock has ended and was removed.
	EventLockEnded = "LockEnded"
)

// Reasons of events on Machines. A warning about what does not pass by itself has
// the reason of the condition that says it.
const (
	// EventHeldByHooks: the Machine waits for hooks.
	EventHeldByHooks = "HeldByHooks"
	// EventDrainStarted: pods begin to leave the Node.
	EventDrainStarted = "DrainStarted"
	// EventDrainCompleted: every pod has left that has to.
	EventDrainCompleted = "DrainCompleted"
	// EventDrainTimedOut warns of the pods that go with the Machine.
	EventDrainTimedOut = "DrainTimedOut"
	// EventDrainSkipped: the Node is not drained.
	EventDrainSkipped = "DrainSkipped"
	// EventVolumesAttached: the Machine waits for volumes.
	EventVolumesAttached = "VolumesAttached"
	// EventVolumesDetached: no volume is attached that matters.
	EventVolumesDetached = ReasonVolumesDetached
	// EventVolumeDetachTimedOut warns of the volumes that were not detached in time.
	EventVolumeDetachTimedOut = "VolumeDetachTimedOut"
	// EventVolumeDetachSkipped: no volume is waited for.
	EventVolumeDetachSkipped = "VolumeDetachSkipped"
	// EventInfrastructureDeleted: the infrastructure is gone.
	EventInfrastructureDeleted = "InfrastructureDeleted"
	// EventBootstrapDeleted: the bootstrap config is gone.
	EventBootstrapDeleted = "BootstrapDeleted"
	// EventNodeDeleted: the Node is gone.
	EventNodeDeleted = "NodeDeleted"
	// EventNodeLeft warns that the Node is left in the cluster.
	EventNodeLeft = "NodeLeft"
)

// Reasons of events of the node agent, on its Node.
const (
	// EventStaticPodHeld: the manifest of a static pod was put aside, so that the kubelet
	// ends the pod.
	EventStaticPodHeld = "StaticPodHeld"
	// EventStaticPodRestored: the manifest of a static pod is back.
	EventStaticPodRestored = "StaticPodRestored"
	// EventManifestReplaced warns that somebody wrote a manifest that was put aside. What
	// was written is put aside instead.
	EventManifestReplaced = "ManifestReplaced"
	// EventManifestSuperseded warns that somebody wrote a manifest that was put aside, and
	// that what was put aside stays where it is now.
	EventManifestSuperseded = "ManifestSuperseded"
	// EventManifestGone warns that somebody took or brought back a manifest that was put
	// aside.
	EventManifestGone = "ManifestGone"
)

// Reasons of events on the Machines of other controllers, for which Ebbtide drains.
const (
	// EventBridgeWaiting: the drain waits for other hooks, or for what it needs to know.
	EventBridgeWaiting = "BridgeWaiting"
	// EventBridgeDraining: the node of the Machine is drained.
	EventBridgeDraining = "BridgeDraining"
	// EventBridgeBlocked warns that something is in the way of a drain by a kubeconfig that does
	// not pass by itself, such as a right that its user lacks.
	EventBridgeBlocked = "BridgeBlocked"
	// EventBridgeDone: the node is drained, and the hook of Ebbtide removed.
	EventBridgeDone = "BridgeDone"
	// EventBridgeSkipped: the node is not drained by Ebbtide, and the hook removed.
	EventBridgeSkipped = "BridgeSkipped"
	// EventBridgeGivenUp warns that the drain took longer than the Machine allows, and that
	// the hook was removed.
	EventBridgeGivenUp = "BridgeGivenUp"
)
