package v1alpha1

// Keys that a source document spells out.
const (
	// MaintenanceCompletionFinalizer holds a NodeMaintenance until its Complete
	// stage has run: nodes restored, evacuations withdrawn (KEP-4212).
	MaintenanceCompletionFinalizer = "nodemaintenance.k8s.io/maintenance-completion"

	// InstigatorFinalizerPrefix begins the finalizer by which an instigator asks
	// for an Evacuation. What follows names the instigator (KEP-4212).
	InstigatorFinalizerPrefix = "evacuation.coordination.k8s.io/instigator_"
	// NodeMaintenanceInstigator is the finalizer of the NodeMaintenance controller.
	NodeMaintenanceInstigator = InstigatorFinalizerPrefix + "nodemaintenance.k8s.io"
	// EvictionInstigator is the finalizer in the name of whoever calls the
	// eviction API, such as kubectl drain or an autoscaler. It is withdrawn when
	// nobody has called for a while, see EvictionAttemptAnnotation.
	EvictionInstigator = InstigatorFinalizerPrefix + "eviction-api.ebbtide.dev"
	// LifecycleInstigator is the finalizer of Ebbtide's responders to the Evictions of
	// lifecycle.k8s.io: in their turn of the Eviction that EvictionTurnAnnotation names.
	LifecycleInstigator = InstigatorFinalizerPrefix + "lifecycle.ebbtide.dev"

	// EvacuatorAnnotationPrefix begins the pod annotation by which an evacuator
	// registers. The rest of the key is its class, the value
	// "<priority>/<role>" with priority 0..100000 and an optional role (KEP-4563).
	EvacuatorAnnotationPrefix = "evacuation.coordination.k8s.io/priority_"

	// DeploymentEvacuatorClass moves pods of a Deployment by surging.
	DeploymentEvacuatorClass = "deployment.apps.k8s.io"
	// DaemonSetEvacuatorClass removes DaemonSet pods of a node under maintenance.
	DaemonSetEvacuatorClass = "daemonset.apps.k8s.io"
	// KubeletEvacuatorClass removes static pods; the node agent answers to it.
	KubeletEvacuatorClass = "kubelet.k8s.io"

	// DrainLabel on a pod overrides how a drain treats it: "skip" retains it,
	// "wait-completed" waits for it. Values are compared without case; other
	// values are ignored (machine-drain-rules).
	DrainLabel = "cluster.x-k8s.io/drain"

	// PreDrainHookAnnotationPrefix begins an annotation of a Machine that is a
	// pre-drain hook; its value says whose (machine-deletion-process).
	PreDrainHookAnnotationPrefix = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
	// PreTerminateHookAnnotationPrefix begins an annotation of a Machine that is a
	// pre-terminate hook; its value says whose (machine-deletion-process).
	PreTerminateHookAnnotationPrefix = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
	// ControlPlaneHookAnnotation is the pre-terminate hook of a KubeadmControlPlane.
	ControlPlaneHookAnnotation = PreTerminateHookAnnotationPrefix + "/kcp-cleanup"
	// ExcludeNodeDrainingAnnotation on a Machine leaves out its drain; any value.
	ExcludeNodeDrainingAnnotation = "machine.cluster.x-k8s.io/exclude-node-draining"
	// ExcludeWaitForNodeVolumeDetachAnnotation on a Machine leaves out the wait
	// for its volumes; any value.
	ExcludeWaitForNodeVolumeDetachAnnotation = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
	// KarpenterDoNotDisruptAnnotation keeps Karpenter from consolidating or replacing a Node
	// if its value is "true". On a Pod that, or a duration, keeps it from the Pod's node.
	KarpenterDoNotDisruptAnnotation = "karpenter.sh/do-not-disrupt"
	// KarpenterDisruptedTaint is on Nodes that Karpenter empties and removes.
	KarpenterDisruptedTaint = "karpenter.sh/disrupted"
	// KarpenterTerminationFinalizer holds a Node until Karpenter is through with it.
	KarpenterTerminationFinalizer = "karpenter.sh/termination"
	// ScaleDownDisabledAnnotation keeps the cluster-autoscaler from removing a Node if its
	// value is "true".
	ScaleDownDisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ToBeDeletedTaint is on Nodes that the cluster-autoscaler empties and removes; its value
	// is when it began, in Unix seconds.
	ToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"
	// DeletionCandidateTaint is on Nodes that the cluster-autoscaler thinks of removing.
	DeletionCandidateTaint = "DeletionCandidateOfClusterAutoscaler"

	// ControlPlaneLabel on a Machine says that it is one of the control plane; any value.
	ControlPlaneLabel = "cluster.x-k8s.io/control-plane"
)

// Keys of Ebbtide itself.
const (
	// CordonAnnotation on a Node is the ledger of its cordon: JSON with what the
	// node was before and which maintenances hold it. It is written in the same
	// update as the cordon and removed in the one that lifts it.
	CordonAnnotation = "ebbtide.dev/cordon"
	// NodeAnnotation on an Evacuation, or on an EvictionRequest of Ebbtide,
	// names the node that the pod leaves.
	NodeAnnotation = "ebbtide.dev/node"
	// CompleteLabel on an Evacuation says that its pod is gone or has finished, so
	// that it is deleted together with others. The evacuation controller sets it, to
	// "true", in the write by which it lets go of the object.
	CompleteLabel = "ebbtide.dev/complete"
	// EvictionAttemptAnnotation on an Evacuation is when somebody last called the
	// eviction API for the pod, in RFC 3339. It goes with EvictionInstigator.
	EvictionAttemptAnnotation = "ebbtide.dev/last-eviction-attempt"

	// EvictionTurnAnnotation on an Evacuation says whose turn of which Eviction it is for:
	// JSON with name, uid and responder. It goes with LifecycleInstigator.
	EvictionTurnAnnotation = "ebbtide.dev/eviction-turn"
	// DeploymentSurgeResponder is the name by which a pod has Ebbtide replace it before it is
	// evicted, in its spec.evictionResponders. It registers DeploymentEvacuatorClass as well.
	DeploymentSurgeResponder = "ebbtide.dev/deployment-surge"

	// DrainTargetsAnnotation on a Node is what of its DaemonSet and static pods
	// has to stay away until the maintenance is complete: JSON, the drainTargets
	// of these types. It is written with the cordon and removed with it.
	DrainTargetsAnnotation = "ebbtide.dev/drain-targets"
	// DaemonSetDrainLabel on a Node, always "true", goes with DrainTargetsAnnotation: by it the
	// API server finds the nodes whose new DaemonSet pods MaintenanceGate holds back.
	DaemonSetDrainLabel = "ebbtide.dev/daemonset-drain"
	// DaemonSetTaint on a Node, effect NoSchedule, keeps the DaemonSet controller
	// from creating pods there. It is there while all DaemonSet pods are targeted.
	DaemonSetTaint = "ebbtide.dev/daemonset-drain"
	// MaintenanceGate is the scheduling gate that holds back a pod of a DaemonSet,
	// created all the same, until its node's maintenance is complete.
	MaintenanceGate = "ebbtide.dev/node-maintenance"

	// NodeMaintenanceRequester is who NodeMaintenances are in the API group lifecycle.k8s.io:
	// spec.requester of their EvictionRequests.
	NodeMaintenanceRequester = "ebbtide.dev/node-maintenance"
	// EvacuationRequester is who those are there who ask for an Evacuation otherwise than by a
	// NodeMaintenance.
	EvacuationRequester = "ebbtide.dev/evacuation"
	// WithdrawnAnnotation on an EvictionRequest of one of both requesters is when it was
	// withdrawn, in RFC 3339, by the clock of the API server. It is deleted a minute later at
	// the latest.
	WithdrawnAnnotation = "ebbtide.dev/withdrawn"
	// UnansweredAnnotation on an EvictionRequest that was withdrawn, with the value "true",
	// says that nobody had answered it, so that the pod has an Evacuation instead.
	UnansweredAnnotation = "ebbtide.dev/unanswered"

	// AllowScaleDownAnnotation on a NodeMaintenance with the value "true" lets autoscalers
	// remove its nodes when they are empty: they are to go. It is read where a bridge keeps
	// an autoscaler from nodes under maintenance.
	AllowScaleDownAnnotation = "ebbtide.dev/allow-scale-down"

	// HandedOverAnnotation on a NodeMaintenance with completeWhen is what its node was when
	// it was Drained, and what it has been since: JSON with bootID, kubeletVersion,
	// kernelVersion, osImage, containerRuntimeVersion and time. Without it nothing is compared.
	HandedOverAnnotation = "ebbtide.dev/handed-over"
	// HandedOverLabel on a Node, always "true", says that a NodeMaintenance with completeWhen
	// has drained it and waits for it to come back, so that the work on it may begin. It
	// goes in the update that gives the node back.
	HandedOverLabel = "ebbtide.dev/handed-over"
	// HandedOverByAnnotation on such a Node has the names of these NodeMaintenances,
	// separated by commas, at most 16.
	HandedOverByAnnotation = "ebbtide.dev/handed-over-by"

	// SurgeAnnotation on a pod is the record of its detachment: JSON with its
	// Deployment and the pod-template-hash that it had. It is written in the same
	// update as the changed label and removed in the one that restores it.
	SurgeAnnotation = "ebbtide.dev/surge"
	// SurgeReplacementAnnotation on a pod says that it got a low deletion cost in
	// favour of a pod that goes back to its ReplicaSet: JSON, whose, and the cost before.
	SurgeReplacementAnnotation = "ebbtide.dev/surge-replacement"

	// MachineFinalizer holds a Machine until its deletion is through.
	MachineFinalizer = "ebbtide.dev/machine"
	// ClusterFinalizer holds a Cluster while it has Machines.
	ClusterFinalizer = "ebbtide.dev/cluster"
	// EvictionRequestAnnotation on an Eviction says that it is made for an
	// EvictionRequest: its author waits for the evacuators of the pod, as others do. Its
	// value is the responder that makes it, which need not wait for itself in its turn.
	EvictionRequestAnnotation = "ebbtide.dev/eviction-request"
	// MachineDrainAnnotation on an Eviction says that it is made for a Machine:
	// unlike those of an Evacuation it waits for the pod's evacuators.
	MachineDrainAnnotation = "ebbtide.dev/machine-drain"

	// OnUpgradeLabel on a pod with the value OnUpgradeStay has it stay on a node
	// whose maintenance is in place (skip-drain-on-upgrade).
	OnUpgradeLabel = "ebbtide.dev/on-upgrade"
	// OnUpgradeStay is the only value of OnUpgradeLabel; case makes no difference.
	OnUpgradeStay = "stay"
	// LockAnnotation on a PodDisruptionBudget is its lock: JSON with holder,
	// reason, acquiredAt, renewedAt and expiresAt. While it holds, nobody is to
	// disrupt the pods of the budget (skip-drain-on-upgrade).
	LockAnnotation = "ebbtide.dev/lock"
	// BackAnnotation on a DrainRecord with the value "true" is a person's word that the
	// node is back, or was never away, so that what is said of its pods can be believed.
	BackAnnotation = "ebbtide.dev/back"
	// RebootPromiseAnnotation on a Node records that the node was promised, or is about to
	// be, that it may go down: JSON with recordUID, maintenanceRef, bootID,
	// expectedDowntimeSeconds and time. It is there before the Node is Drained, and is
	// removed when the node is back. Until then no other node locks a PodDisruptionBudget
	// that protects a pod on it, even if its DrainRecord or the budget was deleted.
	RebootPromiseAnnotation = "ebbtide.dev/reboot-promise"
	// DrainLockMutex is the Lease in Ebbtide's namespace that a node holds while it
	// takes the locks that it needs (skip-drain-on-upgrade).
	DrainLockMutex = "drain-lock-mutex"
	// MissingRightsLabel on the Lease of Ebbtide's leader names the parts of the manager that
	// do not run because its account lacks rights, separated by dots: machines,
	// eviction-requests, cluster-api, openshift. It is empty if all run that are switched on.
	MissingRightsLabel = "ebbtide.dev/missing-rights"
	// StartedByAnnotation on a NodeMaintenance is the user who created it, or who moved it to
	// stage Cordon or Drain since, as the API server knows them. It is only shown to people.
	StartedByAnnotation = "ebbtide.dev/started-by"

	// CreatedByLabel on a NodeMaintenance with the value CreatedByNodeAgent says that it was
	// made for the shutdown of a node. It is deleted when that is over (KEP-4212).
	CreatedByLabel = "ebbtide.dev/created-by"
	// CreatedByNodeAgent is the only value of CreatedByLabel that means anything.
	CreatedByNodeAgent = "node-agent"
	// DrainOptLabel on a Cluster or Machine of Cluster API, or on a MachineSet or Machine of
	// OpenShift, asks with the value "true" that Ebbtide drains their nodes. What a Machine
	// says itself counts more; any other value is no.
	DrainOptLabel = "ebbtide.dev/drain"
	// BridgeHookAnnotation on a Machine of Cluster API is Ebbtide's pre-drain hook: nobody
	// drains its node before it is removed. Its value is BridgeOwner.
	BridgeHookAnnotation = PreDrainHookAnnotationPrefix + "/ebbtide"
	// BridgeHookName is the name of this hook in the lifecycleHooks of a Machine of OpenShift.
	BridgeHookName = "ebbtide"
	// BridgeOwner is whose the hook is.
	BridgeOwner = "ebbtide.dev"
	// BridgeLabel on a NodeMaintenance or MachineDrainRule says for whose Machine it was made:
	// cluster-api or openshift. It is deleted when the node is gone.
	BridgeLabel = "ebbtide.dev/bridge"
	// BridgePausedAnnotation on a NodeMaintenance for a Machine is true while no pod is asked to
	// leave for it: its Machine is paused, waits for something else, or is no longer drained.
	BridgePausedAnnotation = "ebbtide.dev/bridge-paused"
	// BridgeDrainStartAnnotation on a Machine of Cluster API is when its drain began, RFC 3339.
	BridgeDrainStartAnnotation = "ebbtide.dev/drain-start"
	// BridgeMachineAnnotation beside BridgeLabel is the namespace/name of this Machine.
	BridgeMachineAnnotation = "ebbtide.dev/bridge-machine"
	// BridgeUIDsAnnotation beside it is the UIDs of this Machine and of its node, with a slash
	// between them.
	BridgeUIDsAnnotation = "ebbtide.dev/bridge-uids"
	// ConditionBridgeDrained is a condition of a Machine of Cluster API: what its drain waits for,
	// and which pods are left and why if the node is drained by the kubeconfig of its Cluster. Its
	// reason is that of the event that says so.
	ConditionBridgeDrained = "ebbtide.dev/Drained"
	// BypassBudgetsVerb on nodemaintenances is the right to ask for LockTimeoutDelete and
	// DeadlineDelete.
	BypassBudgetsVerb = "bypass-budgets"
)
