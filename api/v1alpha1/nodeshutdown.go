package v1alpha1

// Reasons of events about the shutdown of a node, on the Node and, from the manager, on
// the NodeMaintenance that comes of it.
const (
	// EventNodeShutdownDetected: the node is shutting down, or a shutdown is scheduled.
	EventNodeShutdownDetected = "NodeShutdownDetected"
	// EventNodeShutdownCancelled: the shutdown was cancelled.
	EventNodeShutdownCancelled = "NodeShutdownCancelled"
	// EventNodeShutdownEnded, on the NodeMaintenance: the shutdown is over, and it is deleted.
	EventNodeShutdownEnded = "NodeShutdownEnded"
	// EventNodeShutdownReleased: the agent no longer delays the shutdown.
	EventNodeShutdownReleased = "NodeShutdownReleased"
)

// Conditions of a Node that its agent writes.
const (
	// NodeGracefulShutdown is True while the node shuts down. The name is that of KEP-4212.
	NodeGracefulShutdown = "GracefulNodeShutdownInProgress"
)

// Reasons of NodeGracefulShutdown.
const (
	// ReasonNodeShutdown: the node is shutting down.
	ReasonNodeShutdown = "NodeShutdown"
	// ReasonNodeShutdownCancelled: the shutdown was cancelled.
	ReasonNodeShutdownCancelled = "NodeShutdownCancelled"
	// ReasonNodeReady: the node has booted since.
	ReasonNodeReady = "NodeReady"
)

// Reasons of ConditionShutdownManageable.
const (
	// ReasonShutdownWaits: a shutdown waits for the pods for a limited time.
	ReasonShutdownWaits = "ShutdownWaits"
	// ReasonShutdownDelayTooShort: the delay is too short.
	ReasonShutdownDelayTooShort = "DelayTooShort"
	// ReasonShutdownDelayRefused: systemd-logind refuses the delay of --shutdown-delay.
	ReasonShutdownDelayRefused = "DelayRefused"
	// ReasonKubeletShutdown: the kubelet stops all pods itself.
	ReasonKubeletShutdown = "KubeletShutdown"
	// ReasonShutdownReportOnly: --shutdown=report.
	ReasonShutdownReportOnly = "ReportOnly"
	// ReasonShutdownOff: --shutdown=off.
	ReasonShutdownOff = "SwitchedOff"
	// ReasonNoLogind: systemd-logind does not respond.
	ReasonNoLogind = "NoLogind"
	// ReasonInhibitorRefused: systemd-logind refuses inhibitors.
	ReasonInhibitorRefused = "InhibitorRefused"
)
