package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeAgent is the report of a node's agent about static pods and shutdowns (KEP-4212, "kubelet:
// Static Pods" and "kubelet: Graceful Node Shutdown"). It is named after the node and deleted with
// it. Only that node's agent writes it.
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

	// status is the agent's report.
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

// NodeAgentStatus is the report of a node's agent. It is written when something changes; the
// agent's pod or Lease shows whether it is alive.
type NodeAgentStatus struct {
	// agentVersion is the version of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AgentVersion string `json:"agentVersion,omitempty"`

	// podName is the pod of the agent. Unset if the agent is a host service with the Lease
	// ebbtide-agent-<node> in Ebbtide's namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`

	// podNamespace is the namespace of that pod. Defaults to Ebbtide's namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodNamespace string `json:"podNamespace,omitempty"`

	// bootID is the boot ID of the node at the time of this report.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BootID string `json:"bootID,omitempty"`

	// manifestDir is the folder of static pod manifests, which must be the kubelet's
	// staticPodPath.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ManifestDir string `json:"manifestDir,omitempty"`

	// heldCount is the number of static pods that are stopped or being stopped.
	// +optional
	HeldCount int32 `json:"heldCount,omitempty"`

	// staticPods lists the static pods of the node, by namespace and name. At most 256; running
	// ones are omitted first.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	StaticPods []StaticPod `json:"staticPods,omitempty"`

	// shutdown describes a shutdown of the node.
	// +optional
	Shutdown *NodeShutdown `json:"shutdown,omitempty"`

	// conditions are StaticPodsManageable and ShutdownManageable.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StaticPodState is the state of a static pod.
//
// +kubebuilder:validation:Enum=Running;Holding;Held;Restoring;Unmanageable
// +kubebuilder:validation:MaxLength=16
type StaticPodState string

const (
	// StaticPodRunning means that the pod has its manifest and can be stopped.
	StaticPodRunning StaticPodState = "Running"
	// StaticPodHolding means that its manifest is renamed and it is terminating.
	StaticPodHolding StaticPodState = "Holding"
	// StaticPodHeld means that it is stopped and stays away.
	StaticPodHeld StaticPodState = "Held"
	// StaticPodRestoring means that its manifest is back and it is starting.
	StaticPodRestoring StaticPodState = "Restoring"
	// StaticPodUnmanageable means that the agent cannot stop it, for the given reason.
	StaticPodUnmanageable StaticPodState = "Unmanageable"
)

// StaticPod is a pod that the kubelet runs from a file.
type StaticPod struct {
	// namespace of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of its mirror pod: the name in the manifest, "-", and the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// priority of the pod.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// manifest is the name of its file in manifestDir. Unset if there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Manifest string `json:"manifest,omitempty"`
	// state of the pod.
	// +required
	State StaticPodState `json:"state"`
	// reason of the state, for programs. Unset while it runs.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message is the reason for people. At most 1,024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// sinceTime is the start of this state.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
	// maintenanceName is the NodeMaintenance that it was stopped for.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	MaintenanceName string `json:"maintenanceName,omitempty"`
}

// NodeShutdownPhase is the progress of a shutdown.
//
// +kubebuilder:validation:Enum=None;Scheduled;Preparing;Released;Cancelled
// +kubebuilder:validation:MaxLength=16
type NodeShutdownPhase string

const (
	// ShutdownNone means that the node is not shutting down.
	ShutdownNone NodeShutdownPhase = "None"
	// ShutdownScheduled means that a shutdown is scheduled.
	ShutdownScheduled NodeShutdownPhase = "Scheduled"
	// ShutdownPreparing means that the node is shutting down and waits for the agent.
	ShutdownPreparing NodeShutdownPhase = "Preparing"
	// ShutdownReleased means that the agent no longer delays the shutdown.
	ShutdownReleased NodeShutdownPhase = "Released"
	// ShutdownCancelled means that the shutdown was cancelled.
	ShutdownCancelled NodeShutdownPhase = "Cancelled"
)

// NodeShutdownMode selects the reaction of the agent to a shutdown.
//
// +kubebuilder:validation:Enum=Drain;Report;Off
// +kubebuilder:validation:MaxLength=8
type NodeShutdownMode string

const (
	// ShutdownModeDrain drains the node while the shutdown waits.
	ShutdownModeDrain NodeShutdownMode = "Drain"
	// ShutdownModeReport cordons the node and reports, because the kubelet stops all pods itself.
	ShutdownModeReport NodeShutdownMode = "Report"
	// ShutdownModeOff ignores shutdowns.
	ShutdownModeOff NodeShutdownMode = "Off"
)

// NodeShutdown describes the shutdown of a node.
type NodeShutdown struct {
	// phase is the progress.
	// +required
	Phase NodeShutdownPhase `json:"phase"`
	// type of the shutdown, as systemd-logind names it: reboot, power-off, halt, kexec,
	// soft-reboot, or unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Type string `json:"type,omitempty"`
	// startTime is the time when the agent first saw it.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// deadlineTime is the time when the node goes down, drained or not.
	// +optional
	DeadlineTime *metav1.Time `json:"deadlineTime,omitempty"`
	// delaySeconds is the delay of a shutdown by systemd-logind.
	// +optional
	DelaySeconds int32 `json:"delaySeconds,omitempty"`
	// mode is the reaction of the agent.
	// +required
	Mode NodeShutdownMode `json:"mode"`
}

// Conditions of a NodeAgent.
const (
	// ConditionStaticPodsManageable says whether the agent can stop static pods. If it is False,
	// the reason is NotStarted or the fault of the folder; each pod has a reason of its own.
	ConditionStaticPodsManageable = "StaticPodsManageable"
	// ConditionShutdownManageable says whether the agent can have the node drained before it shuts
	// down.
	ConditionShutdownManageable = "ShutdownManageable"
)

// Why a static pod cannot be taken down. ReadOnly and SingleFile are of the folder, and
// so of all of its pods.
const (
	// StaticPodControlPlane: it belongs to the control plane; the message names the missing
	// condition.
	StaticPodControlPlane = "ControlPlane"
	// StaticPodFromURL: it comes from the kubelet's staticPodURL.
	StaticPodFromURL = "FromURL"
	// StaticPodNoManifest: no file in the folder defines it.
	StaticPodNoManifest = "NoManifest"
	// StaticPodSeveralManifests: several files define it.
	StaticPodSeveralManifests = "SeveralManifests"
	// StaticPodReadOnly: the folder is not writable.
	StaticPodReadOnly = "ReadOnly"
	// StaticPodSingleFile: the kubelet's staticPodPath is a file.
	StaticPodSingleFile = "SingleFile"
	// StaticPodUnparsable: the file is not a pod.
	StaticPodUnparsable = "Unparsable"
	// StaticPodUnreadable: the folder, or other required data, cannot be read.
	StaticPodUnreadable = "Unreadable"
	// StaticPodNoMirror: a file defines it, but there is no mirror pod.
	StaticPodNoMirror = "NoMirror"
	// StaticPodRefused: its manifest cannot be renamed; the message has the cause.
	StaticPodRefused = "Refused"
	// StaticPodsFound is the reason of a folder whose pods can be stopped.
	StaticPodsFound = "Found"
	// StaticPodsNone is the reason of a folder that does not exist.
	StaticPodsNone = "NoFolder"
	// StaticPodNotStarted: its manifest is back, but the kubelet does not start it.
	StaticPodNotStarted = "NotStarted"
	// StaticPodStuck: its manifest is renamed, but it still runs after its grace period.
	StaticPodStuck = "Stuck"
	// StaticPodKubeletDown: the kubelet does not respond, so the pod cannot be stopped.
	StaticPodKubeletDown = "KubeletDown"
)
