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
)

// Keys of Ebbtide itself.
const (
	// CordonAnnotation on a Node is the ledger of its cordon: JSON with what the
	// node was before and which maintenances hold it. It is written in the same
	// update as the cordon and removed in the one that lifts it.
	CordonAnnotation = "ebbtide.dev/cordon"
	// NodeAnnotation on an Evacuation names the node that the pod leaves, for the
	// printer column.
	NodeAnnotation = "ebbtide.dev/node"
)
