package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeAgent is what the agent on a node says of the static pods that it can take down, and
// of a shutdown that it sees coming (KEP-4212, "kubelet: Static Pods" and "kubelet:
// Graceful Node Shutdown"). It has the name of the node and ends with it. The agent of that
// node writes it, and nobody else.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=na
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.heldCount`
// +kubebuilder:printcolumn:name="Static pods",type=string,JSONPath=`.status.conditions[?(@.type=="StaticPodsManageable")].reason`
// +kubebuilder:printcolumn:name="Shutdown",type=string,JSONPath=`.status.shutdown.phase`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.shutdown.mode`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.agentVersion`,priority=1
// +kubebuilder:printcolumn:name="Boot",type=string,JSONPath=`.status.bootID`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeAgent struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is that of the node.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what the agent has seen and done.
	// +optional
	Status NodeAgentStatus `json:"status,omitempty"`
}

// NodeAgentList is a list of NodeAgents.
//
// +kubebuilder:object:root=true
type NodeAgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeAgent `json:"items"`
}

// NodeAgentStatus is what the agent of a node has seen and done. It is written when
// something changes: whether the agent is there is told by its pod, or by its Lease.
type NodeAgentStatus struct {
	// agentVersion is the version of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AgentVersion string `json:"agentVersion,omitempty"`

	// podName is the pod of the agent. Empty if the agent runs as a unit of the host, and
	// keeps the Lease ebbtide-agent-<node> in Ebbtide's namespace instead.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`

	// podNamespace is the namespace of that pod. Defaults to Ebbtide's namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodNamespace string `json:"podNamespace,omitempty"`

	// bootID is the boot of the node in which this was written.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BootID string `json:"bootID,omitempty"`

	// manifestDir is the folder that the agent takes for the kubelet's staticPodPath.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ManifestDir string `json:"manifestDir,omitempty"`

	// heldCount is how many static pods are being taken down or kept away.
	// +optional
	HeldCount int32 `json:"heldCount,omitempty"`

	// staticPods are those of the node, by namespace and name; at most 256. Beyond that
	// those that run are left out first.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	StaticPods []StaticPod `json:"staticPods,omitempty"`

	// shutdown is what is known of the shutdown of the node.
	// +optional
	Shutdown *NodeShutdown `json:"shutdown,omitempty"`

	// conditions are StaticPodsManageable and ShutdownManageable.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StaticPodState is how far a static pod has been taken down.
//
// +kubebuilder:validation:Enum=Running;Holding;Held;Restoring;Unmanageable
// +kubebuilder:validation:MaxLength=16
type StaticPodState string

const (
	// StaticPodRunning says that the pod has its manifest, and can be taken down.
	StaticPodRunning StaticPodState = "Running"
	// StaticPodHolding says that its manifest has been put aside, and that it terminates.
	StaticPodHolding StaticPodState = "Holding"
	// StaticPodHeld says that it is gone, and stays away.
	StaticPodHeld StaticPodState = "Held"
	// StaticPodRestoring says that its manifest is back, and that it has yet to start.
	StaticPodRestoring StaticPodState = "Restoring"
	// StaticPodUnmanageable says that the agent cannot take it down; why is its reason.
	StaticPodUnmanageable StaticPodState = "Unmanageable"
)

// StaticPod is a pod that the kubelet makes from a file.
type StaticPod struct {
	// namespace of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of its mirror pod in the API: that of the manifest, "-", and the node's.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// priority of the pod.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// manifest is the name of its file in manifestDir; empty if there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Manifest string `json:"manifest,omitempty"`
	// state is how far it has been taken down.
	// +required
	State StaticPodState `json:"state"`
	// reason says in one word why it is in this state; empty while it runs.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message says the same to people. At most 1,024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// sinceTime is since when it is in this state.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
	// maintenanceName is the NodeMaintenance for which it was taken down.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	MaintenanceName string `json:"maintenanceName,omitempty"`
}

// NodeShutdownPhase is how far a shutdown has come.
//
// +kubebuilder:validation:Enum=None;Scheduled;Preparing;Released;Cancelled
// +kubebuilder:validation:MaxLength=16
type NodeShutdownPhase string

const (
	// ShutdownNone says that nobody shuts the node down.
	ShutdownNone NodeShutdownPhase = "None"
	// ShutdownScheduled says that somebody has set a time for it.
	ShutdownScheduled NodeShutdownPhase = "Scheduled"
	// ShutdownPreparing says that the node shuts down and waits for the agent.
	ShutdownPreparing NodeShutdownPhase = "Preparing"
	// ShutdownReleased says that the agent no longer holds the shutdown up.
	ShutdownReleased NodeShutdownPhase = "Released"
	// ShutdownCancelled says that the node does not shut down after all.
	ShutdownCancelled NodeShutdownPhase = "Cancelled"
)

// NodeShutdownMode is what the agent does about a shutdown.
//
// +kubebuilder:validation:Enum=Drain;Report;Off
// +kubebuilder:validation:MaxLength=8
type NodeShutdownMode string

const (
	// ShutdownModeDrain has the node drained while the shutdown waits.
	ShutdownModeDrain NodeShutdownMode = "Drain"
	// ShutdownModeReport has it cordoned and told, because the kubelet stops all pods itself.
	ShutdownModeReport NodeShutdownMode = "Report"
	// ShutdownModeOff leaves shutdowns alone.
	ShutdownModeOff NodeShutdownMode = "Off"
)

// NodeShutdown is what is known of the shutdown of a node.
type NodeShutdown struct {
	// phase is how far it has come.
	// +required
	Phase NodeShutdownPhase `json:"phase"`
	// type is what comes of it, in the words of systemd-logind: reboot, power-off, halt,
	// kexec, soft-reboot, or unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Type string `json:"type,omitempty"`
	// startTime is when the agent first heard of it.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// deadlineTime is when the node goes down, whether it is drained or not.
	// +optional
	DeadlineTime *metav1.Time `json:"deadlineTime,omitempty"`
	// delaySeconds is for how long systemd-logind lets a shutdown wait.
	// +optional
	DelaySeconds int32 `json:"delaySeconds,omitempty"`
	// mode is what the agent does about it.
	// +required
	Mode NodeShutdownMode `json:"mode"`
}

// Conditions of a NodeAgent.
const (
	// ConditionStaticPodsManageable says whether the agent can take static pods down. It is
	// False with the reason of the folder, or NotStarted; the pods have their own.
	ConditionStaticPodsManageable = "StaticPodsManageable"
	// ConditionShutdownManageable says whether the agent can have the node drained before
	// it shuts down.
	ConditionShutdownManageable = "ShutdownManageable"
)

// Why a static pod cannot be taken down. ReadOnly and SingleFile are of the folder, and
// so of all of its pods.
const (
	// StaticPodControlPlane: it is part of the control plane, and the message says what has
	// to be otherwise for it to go.
	StaticPodControlPlane = "ControlPlane"
	// StaticPodFromURL: it comes from the kubelet's staticPodURL.
	StaticPodFromURL = "FromURL"
	// StaticPodNoManifest: no file in the folder makes it.
	StaticPodNoManifest = "NoManifest"
	// StaticPodSeveralManifests: several files make it.
	StaticPodSeveralManifests = "SeveralManifests"
	// StaticPodReadOnly: the folder cannot be written.
	StaticPodReadOnly = "ReadOnly"
	// StaticPodSingleFile: the kubelet's staticPodPath is a file.
	StaticPodSingleFile = "SingleFile"
	// StaticPodUnparsable: the file is no pod.
	StaticPodUnparsable = "Unparsable"
	// StaticPodUnreadable: the folder cannot be read, or what else has to be known first.
	StaticPodUnreadable = "Unreadable"
	// StaticPodNoMirror: a file makes it, and the API shows nothing of it.
	StaticPodNoMirror = "NoMirror"
	// StaticPodRefused: its manifest can be put neither aside nor back; the words are those
	// of the node, or of whoever did not answer.
	StaticPodRefused = "Refused"
	// StaticPodsFound is the reason of a folder whose pods can be taken down.
	StaticPodsFound = "Found"
	// StaticPodsNone is the reason of a folder that does not exist.
	StaticPodsNone = "NoFolder"
	// StaticPodNotStarted: its manifest is back, and the kubelet does not start it.
	StaticPodNotStarted = "NotStarted"
	// StaticPodStuck: its manifest is aside for longer than it may take, and it still runs.
	StaticPodStuck = "Stuck"
	// StaticPodKubeletDown: the kubelet does not answer, so that nobody stops it.
	StaticPodKubeletDown = "KubeletDown"
)
