package event

import "ebbtide.dev/ebbtide/api/v1alpha1"

// Events on Machines of other controllers.
var (
	BridgeWaiting  = normal(v1alpha1.EventBridgeWaiting, "Drain").on
	BridgeDraining = normal(v1alpha1.EventBridgeDraining, "Drain").on
	BridgeBlocked  = warning(v1alpha1.EventBridgeBlocked, "Drain").on
	BridgeDone     = normal(v1alpha1.EventBridgeDone, "Drain").on
	BridgeSkipped  = normal(v1alpha1.EventBridgeSkipped, "Drain").on
	BridgeGivenUp  = warning(v1alpha1.EventBridgeGivenUp, "Drain").on
)

// Events about DaemonSet pods and the maintenance of their node.
var (
	DaemonSetPodDeleted  = normal(v1alpha1.EventDaemonSetPodDeleted, "Evacuate").onEvacuation
	DaemonSetPodReleased = normal(v1alpha1.EventDaemonSetPodReleased, "Release").onPod
)

// Events about pods of Deployments that surge.
var (
	PodDetached        = normal(v1alpha1.EventPodDetached, "Surge").onSurgingPod
	PodGivenBack       = normal(v1alpha1.EventPodGivenBack, "Surge").onSurgingPod
	DetachedPodDeleted = normal(v1alpha1.EventDetachedPodDeleted, "Surge").onSurgingPod
	NotSurged          = warning(v1alpha1.EventNotSurged, "Evacuate").onEvacuation
)

// Events of an agent on its node.
var (
	StaticPodHeld      = normal(v1alpha1.EventStaticPodHeld, "Hold").onAgent
	StaticPodRestored  = normal(v1alpha1.EventStaticPodRestored, "Restore").onAgent
	ManifestReplaced   = warning(v1alpha1.EventManifestReplaced, "Hold").onAgent
	ManifestSuperseded = warning(v1alpha1.EventManifestSuperseded, "Restore").onAgent
	ManifestGone       = warning(v1alpha1.EventManifestGone, "Hold").onAgent
)

// Events on Evacuations, with the message of the decision.
var (
	EvacuatorActivated = normal(v1alpha1.EventEvacuatorActivated, "Evacuate").onEvacuation
	EvacuatorReplaced  = warning(v1alpha1.EventEvacuatorReplaced, "Evacuate").onEvacuation
	EvacuatorRestarted = warning(v1alpha1.EventEvacuatorRestarted, "Evacuate").onEvacuation
	EvacuatorReturned  = normal(v1alpha1.EventEvacuatorReturned, "Evacuate").onEvacuation
	EvacuatorsIgnored  = warning(v1alpha1.EventEvacuatorsIgnored, "Evacuate").onEvacuation
	EvictionWithdrawn  = normal(v1alpha1.EventEvictionWithdrawn, "Evacuate").onEvacuation
	EvacuationGoesOn   = normal(v1alpha1.EventEvacuationGoesOn, "Evacuate").onEvacuation
	PodEvicted         = normal(v1alpha1.EventPodEvicted, "Evacuate").onEvacuation
)
