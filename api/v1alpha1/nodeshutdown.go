package v1alpha1

// Reasons of events about the shutdown of a node, on the Node and, from the manager, on
// the NodeMaintenance that comes of it.
const (
	// EventNodeShutdownDetected: the node shuts down, or somebody has set a time for it.
	EventNodeShutdownDetected = "NodeShutdownDetected"
	// EventNodeShutdownCancelled: it does not shut down after all.
	EventNodeShutdownCancelled = "NodeShutdownCancelled"
	// EventNodeShutdownEnded, on the NodeMaintenance: it is deleted, because the shutdown is over.
	EventNodeShutdownEnded = "NodeShutdownEnded"
	// EventNodeShutdownReleased: the agent no longer holds the shutdown up.
	EventNodeShutdownReleased = "NodeShutdownReleased"
)

// Conditions of a Node that its agent writes.
const (
	// NodeGracefulShutdown is True while the node shuts down. Kubernetes has the name for
	// it (KEP-4212).
	NodeGracefulShutdown = "GracefulNodeShutdownInProgress"
)

// Reasons of NodeGracefulShutdown.
const (
	// ReasonNodeShutdown: the node shuts down.
	ReasonNodeShutdown = "NodeShutdown"
	// ReasonNodeShutdownCancelled: it does not after all.
	ReasonNodeShutdownCancelled = "NodeShutdownCancelled"
	// ReasonNodeReady: it has booted since.
	ReasonNodeReady = "NodeReady"
)

// Reasons of ConditionShutdownManageable.
const (
	// ReasonShutdownWaits: a shutdown waits for the pods, for a while.
	ReasonShutdownWaits = "ShutdownWaits"
	// ReasonShutdownDelayTooShort: it waits for too short a time.
	ReasonShutdownDelayTooShort = "DelayTooShort"
	// ReasonShutdownDelayRefused: systemd-logind does not allow what --shutdown-delay asks for.
	ReasonShutdownDelayRefused = "DelayRefused"
	// ReasonKubeletShutdown: the kubelet stops all pods itself.
	ReasonKubeletShutdown = "KubeletShutdown"
	// ReasonShutdownReportOnly: --shutdown=report.
	ReasonShutdownReportOnly = "ReportOnly"
	// ReasonShutdownOff: --shutdown=off.
	ReasonShutdownOff = "SwitchedOff"
	// ReasonNoLogind: nobody tells of shutdowns.
	ReasonNoLogind = "NoLogind"
	// ReasonInhibitorRefused: systemd-logind lets nobody hold a shutdown up.
	ReasonInhibitorRefused = "InhibitorRefused"
)
