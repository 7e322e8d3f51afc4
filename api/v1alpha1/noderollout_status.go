package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeRolloutStatus is the observed state of a rollout. Only the rollout controller writes it.
type NodeRolloutStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// summary is the state in one line, for people.
	// +optional
	Summary string `json:"summary,omitempty"`

	// nodeCount is the number of selected nodes. Each is counted in one of the following fields.
	// +optional
	NodeCount int32 `json:"nodeCount"`
	// doneCount is the number of nodes that need no more maintenance.
	// +optional
	DoneCount int32 `json:"doneCount"`
	// workingCount is the number of nodes under maintenance.
	// +optional
	WorkingCount int32 `json:"workingCount"`
	// waitingCount is the number of nodes that have not started.
	// +optional
	WaitingCount int32 `json:"waitingCount"`
	// failedCount is the number of nodes that failed.
	// +optional
	FailedCount int32 `json:"failedCount"`
	// skippedCount is the number of nodes that a user left out.
	// +optional
	SkippedCount int32 `json:"skippedCount"`

	// working lists the nodes that have been started and are not done, by name. It is written
	// before their NodeMaintenances are created. At most 256.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Working []RolloutNode `json:"working,omitempty"`

	// failed lists nodes that failed, by name. At most 20; failedCount counts all.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Failed []RolloutNode `json:"failed,omitempty"`

	// waiting groups the nodes that have not been started, by reason, largest group first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Waiting []RolloutWait `json:"waiting,omitempty"`

	// estimatedCompletionTime is an estimate, from the median of the nodes that are done. Unset
	// before the first one is done, and while nothing can start.
	// +optional
	EstimatedCompletionTime *metav1.Time `json:"estimatedCompletionTime,omitempty"`

	// completedGeneration is the generation that is complete. No node is started for it again,
	// even if further nodes match nodeSelector.
	// +optional
	CompletedGeneration int64 `json:"completedGeneration,omitempty"`

	// conditions are Complete and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutNode is a node of a rollout under maintenance, or one that failed.
type RolloutNode struct {
	// name of the node.
	// +required
	Name string `json:"name"`
	// nodeMaintenanceName is the name of its NodeMaintenance.
	// +optional
	NodeMaintenanceName string `json:"nodeMaintenanceName,omitempty"`
	// attemptCount is the number of attempts so far, including this one.
	// +optional
	AttemptCount int32 `json:"attemptCount,omitempty"`
	// reason is the state of the node, or why it failed. Expect values that are not among the
	// constants.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message describes the state, for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// RolloutWait is a group of nodes that wait for the same reason.
type RolloutWait struct {
	// reason is the reason. Expect values that are not among the constants.
	// +required
	Reason string `json:"reason"`
	// message describes the reason, for people.
	// +optional
	Message string `json:"message,omitempty"`
	// nodeCount is the number of nodes.
	// +required
	NodeCount int32 `json:"nodeCount"`
	// nodes are the first of them, in the order of their start. At most 5.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Nodes []NodeReference `json:"nodes,omitempty"`
}

// Reasons of nodes under maintenance.
const (
	// RolloutNodeStarting: the NodeMaintenance is being created.
	RolloutNodeStarting = "Starting"
	// RolloutNodeDraining: pods are leaving the node.
	RolloutNodeDraining = "Draining"
	// RolloutNodeDrained: the node is drained and waits for the work on it.
	RolloutNodeDrained = "Drained"
	// RolloutNodeReturning: the node is being given back.
	RolloutNodeReturning = "Returning"
)

// Reasons of failed nodes.
const (
	// RolloutNodeDrainTimedOut: the node did not drain in time and was given back.
	RolloutNodeDrainTimedOut = "DrainTimedOut"
	// RolloutNodeWorkTimedOut: the node did not return in time and stays drained.
	RolloutNodeWorkTimedOut = "WorkTimedOut"
	// RolloutNodeCancelled: a user completed the NodeMaintenance before the node was drained.
	RolloutNodeCancelled = "Cancelled"
	// RolloutNodeDeleted: a user deleted the NodeMaintenance before the node was done.
	RolloutNodeDeleted = "Deleted"
	// RolloutNodeStillNeeded: the node was maintained, and a condition of when is still True.
	RolloutNodeStillNeeded = "StillNeeded"
	// RolloutNodeTargetNotMet: the NodeMaintenance is complete and the node does not meet target.
	RolloutNodeTargetNotMet = "TargetNotMet"
)

// Reasons of nodes that wait.
const (
	// RolloutWaitsForUnavailable: maxUnavailable nodes are unavailable.
	RolloutWaitsForUnavailable = "MaxUnavailable"
	// RolloutWaitsForDomain: nodes of another domain of topologyKey are unavailable.
	RolloutWaitsForDomain = "OtherDomain"
	// RolloutWaitsForNodeBudget: a NodeBudget that selects the node allows no more nodes.
	RolloutWaitsForNodeBudget = "NodeBudget"
	// RolloutWaitsForControlPlane: a control plane node is unavailable, or must start first.
	RolloutWaitsForControlPlane = "ControlPlane"
	// RolloutWaitsForOtherNodes: the node starts after the other nodes.
	RolloutWaitsForOtherNodes = "OtherNodes"
	// RolloutWaitsForCanary: the canary nodes must be done first.
	RolloutWaitsForCanary = "Canary"
	// RolloutWaitsForApproval: the canary nodes are done, and a user must approve.
	RolloutWaitsForApproval = "Approval"
	// RolloutWaitsForWindow: no window is open, or too little time is left in it.
	RolloutWaitsForWindow = "Window"
	// RolloutWaitsForBlackout: a blackout lasts.
	RolloutWaitsForBlackout = "Blackout"
	// RolloutWaitsForGate: a gate is closed.
	RolloutWaitsForGate = "Gate"
	// RolloutWaitsForRoom: the pods of the node fit on no other node.
	RolloutWaitsForRoom = "NoRoom"
	// RolloutWaitsForLoss: a drain of the node would lose pods or data for good.
	RolloutWaitsForLoss = "PodLoss"
	// RolloutWaitsForAnswer: whether a gate is open, or a requirement holds, is unknown.
	RolloutWaitsForAnswer = "AnswerUnknown"
	// RolloutWaitsForReady: the node is not Ready.
	RolloutWaitsForReady = "NotReady"
	// RolloutWaitsForMaintenance: another NodeMaintenance has the node.
	RolloutWaitsForMaintenance = "OtherMaintenance"
	// RolloutWaitsForClock: the clock is not trusted.
	RolloutWaitsForClock = ReasonClockSkewed
	// RolloutWaitsForUser: the rollout is paused, aborted or being deleted.
	RolloutWaitsForUser = "NotRunning"
	// RolloutWaitsForFailures: maxFailures nodes have failed.
	RolloutWaitsForFailures = "MaxFailures"
	// RolloutWaitsForWrite: the NodeMaintenance could not be created.
	RolloutWaitsForWrite = "WriteRefused"
	// RolloutWaitsForValidSpec: the spec is invalid.
	RolloutWaitsForValidSpec = ReasonInvalidSpec
)

// Conditions of a NodeRollout.
const (
	// ConditionRolloutComplete says whether every selected node is done, failed or skipped. It
	// is then permanent for this generation.
	ConditionRolloutComplete = "Complete"
	// ConditionRolloutDegraded says whether nodes have failed. With reason MaxFailures no more
	// nodes start.
	ConditionRolloutDegraded = "Degraded"
)

// Reasons of the conditions of a NodeRollout. Those of waiting nodes are others.
const (
	// ReasonRolloutComplete: every selected node is done or skipped.
	ReasonRolloutComplete = "AllDone"
	// ReasonRolloutInProgress: nodes are under maintenance or waiting.
	ReasonRolloutInProgress = "InProgress"
	// ReasonRolloutNodesFailed: nodes have failed.
	ReasonRolloutNodesFailed = "NodesFailed"
	// ReasonRolloutIdle: no node needs maintenance now.
	ReasonRolloutIdle = "Idle"
	// ReasonRolloutHealthy: no node has failed.
	ReasonRolloutHealthy = "Healthy"
	// ReasonRolloutAborted: the rollout was aborted.
	ReasonRolloutAborted = "Aborted"
)
