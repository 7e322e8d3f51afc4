package v1alpha1

// Keys that a source document spells out.
const (
	// MaintenanceCompletionFinalizer keeps a NodeMaintenance until it is completed: nodes
	// restored, evacuations withdrawn (KEP-4212).
	MaintenanceCompletionFinalizer = "nodemaintenance.k8s.io/maintenance-completion"

	// InstigatorFinalizerPrefix starts the finalizer that an instigator sets to ask for an
	// Evacuation; the rest names the instigator (KEP-4212).
	InstigatorFinalizerPrefix = "evacuation.coordination.k8s.io/instigator_"
	// NodeMaintenanceInstigator is the finalizer of the NodeMaintenance controller.
	NodeMaintenanceInstigator = InstigatorFinalizerPrefix + "nodemaintenance.k8s.io"
	// EvictionInstigator is the finalizer for clients of the eviction API, such as kubectl drain.
	// It is removed when they have stopped, see EvictionAttemptAnnotation.
	EvictionInstigator = InstigatorFinalizerPrefix + "eviction-api.ebbtide.dev"
	// LifecycleInstigator is the finalizer of Ebbtide's responders to Evictions of
	// lifecycle.k8s.io, see EvictionTurnAnnotation.
	LifecycleInstigator = InstigatorFinalizerPrefix + "lifecycle.ebbtide.dev"

	// EvacuatorAnnotationPrefix starts the pod annotation that registers an evacuator. The rest of
	// the key is its class, the value is "<priority>/<role>" with a priority from 0 to 100000 and
	// an optional role (KEP-4563).
	EvacuatorAnnotationPrefix = "evacuation.coordination.k8s.io/priority_"

	// DeploymentEvacuatorClass moves pods of a Deployment by surging.
	DeploymentEvacuatorClass = "deployment.apps.k8s.io"
	// DaemonSetEvacuatorClass removes DaemonSet pods from a node under maintenance.
	DaemonSetEvacuatorClass = "daemonset.apps.k8s.io"
	// KubeletEvacuatorClass stops static pods, through the node agent.
	KubeletEvacuatorClass = "kubelet.k8s.io"

	// DrainLabel on a pod overrides how a drain treats it: "skip" retains it, "wait-completed"
	// waits for it. Case does not matter; other values are ignored (machine-drain-rules).
	DrainLabel = "cluster.x-k8s.io/drain"

	// PreDrainHookAnnotationPrefix starts the annotation of a pre-drain hook on a Machine; the
	// value is its owner (machine-deletion-process).
	PreDrainHookAnnotationPrefix = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
	// PreTerminateHookAnnotationPrefix starts the annotation of a pre-terminate hook on a Machine;
	// the value is its owner (machine-deletion-process).
	PreTerminateHookAnnotationPrefix = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
	// ControlPlaneHookAnnotation is the pre-terminate hook of a KubeadmControlPlane.
	ControlPlaneHookAnnotation = PreTerminateHookAnnotationPrefix + "/kcp-cleanup"
	// ExcludeNodeDrainingAnnotation on a Machine, with any value, skips its drain.
	ExcludeNodeDrainingAnnotation = "machine.cluster.x-k8s.io/exclude-node-draining"
	// ExcludeWaitForNodeVolumeDetachAnnotation on a Machine, with any value, skips the wait for
	// its volumes.
	ExcludeWaitForNodeVolumeDetachAnnotation = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
	// KarpenterDoNotDisruptAnnotation with the value "true" prevents Karpenter from consolidating
	// or replacing a Node. On a Pod, "true" or a duration protects its node.
	KarpenterDoNotDisruptAnnotation = "karpenter.sh/do-not-disrupt"
	// KarpenterDisruptedTaint is on Nodes that Karpenter is removing.
	KarpenterDisruptedTaint = "karpenter.sh/disrupted"
	// KarpenterTerminationFinalizer keeps a Node until Karpenter has finished.
	KarpenterTerminationFinalizer = "karpenter.sh/termination"
	// ScaleDownDisabledAnnotation with the value "true" prevents cluster-autoscaler from removing
	// a Node.
	ScaleDownDisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ToBeDeletedTaint is on Nodes that cluster-autoscaler is removing; its value is the start
	// time in Unix seconds.
	ToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"
	// DeletionCandidateTaint is on Nodes that cluster-autoscaler may remove.
	DeletionCandidateTaint = "DeletionCandidateOfClusterAutoscaler"

	// ControlPlaneLabel on a Machine, with any value, marks a control plane Machine.
	ControlPlaneLabel = "cluster.x-k8s.io/control-plane"
)

// Keys of Ebbtide itself.
const (
	// CordonAnnotation on a Node is JSON with the state before the cordon and the maintenances
	// that hold the node. It is written in the same update as the cordon and removed with it.
	CordonAnnotation = "ebbtide.dev/cordon"
	// NodeAnnotation on an Evacuation or on Ebbtide's EvictionRequest names the node that the pod
	// leaves.
	NodeAnnotation = "ebbtide.dev/node"
	// CompleteLabel with the value "true" marks an Evacuation whose pod is gone or has finished,
	// so that such objects are deleted together. The evacuation controller sets it in the same
	// write that removes the finalizers.
	CompleteLabel = "ebbtide.dev/complete"
	// EvictionAttemptAnnotation on an Evacuation is the time of the last call of the eviction API
	// for the pod, in RFC 3339. It goes with EvictionInstigator.
	EvictionAttemptAnnotation = "ebbtide.dev/last-eviction-attempt"

	// EvictionTurnAnnotation on an Evacuation names the Eviction and its active responder: JSON
	// with name, uid and responder. It goes with LifecycleInstigator.
	EvictionTurnAnnotation = "ebbtide.dev/eviction-turn"
	// DeploymentSurgeResponder in a pod's spec.evictionResponders lets Ebbtide replace the pod
	// before it is evicted. It also registers DeploymentEvacuatorClass.
	DeploymentSurgeResponder = "ebbtide.dev/deployment-surge"

	// DrainTargetsAnnotation on a Node lists which DaemonSet and static pods stay away until the
	// maintenance is complete: JSON, the drainTargets of these types. It is written and removed
	// with the cordon.
	DrainTargetsAnnotation = "ebbtide.dev/drain-targets"
	// DaemonSetDrainLabel on a Node, always "true", goes with DrainTargetsAnnotation. It selects
	// the nodes whose new DaemonSet pods get MaintenanceGate.
	DaemonSetDrainLabel = "ebbtide.dev/daemonset-drain"
	// DaemonSetTaint on a Node, effect NoSchedule, prevents the DaemonSet controller from creating
	// pods there. It is set while all DaemonSet pods are targeted.
	DaemonSetTaint = "ebbtide.dev/daemonset-drain"
	// MaintenanceGate is the scheduling gate of a DaemonSet pod that waits until its node's
	// maintenance is complete.
	MaintenanceGate = "ebbtide.dev/node-maintenance"

	// NodeMaintenanceRequester is spec.requester of the EvictionRequests of NodeMaintenances.
	NodeMaintenanceRequester = "ebbtide.dev/node-maintenance"
	// WithdrawnAnnotation on Ebbtide's EvictionRequest is the API server's time of its withdrawal,
	// in RFC 3339. The request is deleted at most a minute later.
	WithdrawnAnnotation = "ebbtide.dev/withdrawn"
	// UnansweredAnnotation with the value "true" marks an EvictionRequest that was withdrawn
	// because no controller answered it.
	UnansweredAnnotation = "ebbtide.dev/unanswered"

	// AllowScaleDownAnnotation with the value "true" on a NodeMaintenance lets autoscalers remove
	// its empty nodes.
	AllowScaleDownAnnotation = "ebbtide.dev/allow-scale-down"

	// HandedOverAnnotation on a NodeMaintenance with completeWhen describes its node at the
	// handover and since: JSON with bootID, kubeletVersion, kernelVersion, osImage,
	// containerRuntimeVersion and time.
	HandedOverAnnotation = "ebbtide.dev/handed-over"
	// GivenBackAnnotation on a NodeMaintenance records the nodes that its deadline has given back:
	// JSON with maintenanceUID, time (the deadline), count, and the names of the first 10 nodes.
	GivenBackAnnotation = "ebbtide.dev/given-back"
	// HandedOverLabel on a Node, always "true", means that a NodeMaintenance with completeWhen has
	// drained it, so the work can start. It is removed when the node is restored.
	HandedOverLabel = "ebbtide.dev/handed-over"
	// HandedOverByAnnotation on such a Node names these NodeMaintenances, separated by commas. At
	// most 16.
	HandedOverByAnnotation = "ebbtide.dev/handed-over-by"

	// SurgeAnnotation on a pod records its detachment: JSON with its Deployment and its former
	// pod-template-hash. It is written and removed together with the label.
	SurgeAnnotation = "ebbtide.dev/surge"
	// SurgeReplacementAnnotation on a pod records a lowered deletion cost, in favour of a pod that
	// returns to its ReplicaSet: JSON with that pod and the former cost.
	SurgeReplacementAnnotation = "ebbtide.dev/surge-replacement"

	// MachineFinalizer keeps a Machine until its deletion is complete.
	MachineFinalizer = "ebbtide.dev/machine"
	// ClusterFinalizer keeps a Cluster while it has Machines.
	ClusterFinalizer = "ebbtide.dev/cluster"
	// EvictionRequestAnnotation on an eviction names the responder that makes it for an
	// EvictionRequest. Like others, it waits for the evacuators of the pod, but not for itself.
	EvictionRequestAnnotation = "ebbtide.dev/eviction-request"
	// MachineDrainAnnotation on an eviction marks one for a Machine. It waits for the pod's
	// evacuators, unlike the eviction of an Evacuation.
	MachineDrainAnnotation = "ebbtide.dev/machine-drain"

	// OnUpgradeLabel on a pod with the value OnUpgradeStay keeps it on a node whose maintenance is
	// in place (skip-drain-on-upgrade).
	OnUpgradeLabel = "ebbtide.dev/on-upgrade"
	// OnUpgradeStay is the only value of OnUpgradeLabel. Case does not matter.
	OnUpgradeStay = "stay"
	// LockAnnotation on a PodDisruptionBudget is its lock: JSON with holder, reason, acquiredAt,
	// renewedAt and expiresAt. While it is valid, the pods of the budget must not be disrupted
	// (skip-drain-on-upgrade).
	LockAnnotation = "ebbtide.dev/lock"
	// BackAnnotation with the value "true" on a DrainRecord is a user's confirmation that the node
	// is back or was never away.
	BackAnnotation = "ebbtide.dev/back"
	// RebootPromiseAnnotation on a Node records that it may go down: JSON with recordUID,
	// maintenanceRef, bootID, expectedDowntimeSeconds and time. It is written before the Node is
	// Drained and removed when the node is back. Until then no other node locks a budget that
	// protects a pod on it, even if its DrainRecord or the budget was deleted.
	RebootPromiseAnnotation = "ebbtide.dev/reboot-promise"
	// DrainLockMutex is the Lease in Ebbtide's namespace that a node holds while it takes locks
	// (skip-drain-on-upgrade).
	DrainLockMutex = "drain-lock-mutex"
	// MissingRightsLabel on the leader's Lease lists the parts of the manager that do not run
	// because rights are missing, separated by dots: rollouts, machines, eviction-requests,
	// cluster-api, openshift.
	MissingRightsLabel = "ebbtide.dev/missing-rights"
	// RequestedByAnnotation on a NodeMaintenance or NodeRollout is the authenticated user who
	// created it or last started it.
	RequestedByAnnotation = "ebbtide.dev/requested-by"

	// RolloutLabel on a NodeMaintenance or Job is the name of the NodeRollout that created it. On
	// NodeMaintenances, only the manager sets it.
	RolloutLabel = "ebbtide.dev/rollout"
	// RolloutAttemptAnnotation beside it is JSON with the attempt: uid of the NodeRollout, nodeUID,
	// target (a hash), attempt and try; with a job also its namespace/name and jobResult.
	RolloutAttemptAnnotation = "ebbtide.dev/rollout-attempt"
	// BootIDAnnotation on a Job of a rollout is the boot ID of its node when it was created.
	BootIDAnnotation = "ebbtide.dev/boot-id"
	// RebootAnnotation with the value "true" on a NodeMaintenance with completeWhen.newBoot makes
	// the agent of its node reboot it, once after each handover.
	RebootAnnotation = "ebbtide.dev/reboot"
	// RolloutFinalizer keeps a NodeRollout until it has let go of its NodeMaintenances, and these
	// as its records.
	RolloutFinalizer = "ebbtide.dev/rollout"

	// CreatedByLabel with the value CreatedByNodeAgent marks a NodeMaintenance for a node that
	// shuts down. It is deleted afterwards (KEP-4212).
	CreatedByLabel = "ebbtide.dev/created-by"
	// CreatedByNodeAgent is the only value of CreatedByLabel.
	CreatedByNodeAgent = "node-agent"
	// DrainOptLabel with the value "true" on a Cluster or Machine of Cluster API, or a MachineSet
	// or Machine of OpenShift, lets Ebbtide drain their nodes. A Machine's label overrides the
	// others; other values mean no.
	DrainOptLabel = "ebbtide.dev/drain"
	// BridgeHookAnnotation on a Machine of Cluster API is Ebbtide's pre-drain hook. Its value is
	// BridgeOwner.
	BridgeHookAnnotation = PreDrainHookAnnotationPrefix + "/ebbtide"
	// BridgeHookName is the name of this hook in the lifecycleHooks of an OpenShift Machine.
	BridgeHookName = "ebbtide"
	// BridgeOwner is the owner of the hook.
	BridgeOwner = "ebbtide.dev"
	// BridgeLabel on a NodeMaintenance or MachineDrainRule names the bridge that created it:
	// cluster-api or openshift. It is deleted with the node.
	BridgeLabel = "ebbtide.dev/bridge"
	// BridgePausedAnnotation on a Machine's NodeMaintenance is "true" while no pod has to leave
	// for it, because the Machine is paused, waits, or is no longer drained.
	BridgePausedAnnotation = "ebbtide.dev/bridge-paused"
	// BridgeDrainStartAnnotation on a Machine of Cluster API is the start time of its drain, in
	// RFC 3339.
	BridgeDrainStartAnnotation = "ebbtide.dev/drain-start"
	// BridgeMachineAnnotation beside BridgeLabel is the namespace/name of the Machine.
	BridgeMachineAnnotation = "ebbtide.dev/bridge-machine"
	// BridgeUIDsAnnotation beside it has the UIDs of the Machine and its node, separated by a
	// slash.
	BridgeUIDsAnnotation = "ebbtide.dev/bridge-uids"
	// ConditionBridgeDrained on a Machine of Cluster API describes what its drain waits for and,
	// for drains through a kubeconfig, the remaining pods. Its reason is that of the event.
	ConditionBridgeDrained = "ebbtide.dev/Drained"
	// BypassBudgetsVerb on nodemaintenances is the right to ask for LockTimeoutDelete and
	// DeadlineDelete.
	BypassBudgetsVerb = "bypass-budgets"
	// ApproveVerb on noderollouts is the right to approve after canary nodes.
	ApproveVerb = "approve"
)
