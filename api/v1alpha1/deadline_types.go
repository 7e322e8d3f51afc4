package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Deadline is the time when nodes must be empty, because they will be shut down or removed.
type Deadline struct {
	// time is the time at which the nodes must be empty, such as 2026-03-01T22:00:00Z.
	// +required
	Time metav1.Time `json:"time"`

	// onDeadline is the action for the remaining pods. Wait continues and reports them; Delete
	// deletes them regardless of their budgets, which needs the verb bypass-budgets on
	// nodemaintenances; GiveBack restores nodes that are not drained. Defaults to Wait.
	// +optional
	// +default="Wait"
	OnDeadline DeadlineAction `json:"onDeadline,omitempty"`

	// deleteBeforeSeconds is the lead of the deletions before time, from 3 to 86400. Pods are
	// deleted by rising priority, with grace periods that end at most two seconds before time.
	// Only used with Delete. Defaults to 60.
	// +optional
	// +default=60
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=86400
	DeleteBeforeSeconds int32 `json:"deleteBeforeSeconds,omitempty"`
}

// DeadlineAction is the action for pods that are left at a deadline.
//
// +kubebuilder:validation:Enum=Wait;Delete;GiveBack
// +kubebuilder:validation:MaxLength=8
type DeadlineAction string

const (
	// DeadlineWait waits for the pods and reports that they are late.
	DeadlineWait DeadlineAction = "Wait"
	// DeadlineDelete deletes the pods regardless of their budgets.
	DeadlineDelete DeadlineAction = "Delete"
	// DeadlineGiveBack restores the nodes that are not drained, and keeps those that are.
	DeadlineGiveBack DeadlineAction = "GiveBack"
)

// Conditions of a NodeMaintenance with a deadline.
const (
	// ConditionPastDeadline says, in stage Drain, whether pods are left at the deadline. It is
	// Unknown with ReasonClockSkewed while the clock is not trusted.
	ConditionPastDeadline = "PastDeadline"
)

// Reasons of ConditionPastDeadline.
const (
	// ReasonDeadlineAhead: the deadline is in the future.
	ReasonDeadlineAhead = "DeadlineAhead"
	// ReasonDeadlineMet: no pod is left at the deadline.
	ReasonDeadlineMet = "DeadlineMet"
	// ReasonDeadlineTooEarly: the deadline had passed before the drain started, so nothing is
	// deleted.
	ReasonDeadlineTooEarly = "DeadlineTooEarly"
	// ReasonDeletingPods: the remaining pods are being deleted.
	ReasonDeletingPods = "DeletingPods"
	// ReasonWaitingForPods: the deadline has passed, and remaining pods are not deleted.
	ReasonWaitingForPods = "WaitingForPods"
	// ReasonGivenBack: nodes were not drained at the deadline, and were given back.
	ReasonGivenBack = "GivenBack"
)

// Reasons of events about deadlines.
const (
	// EventPastDeadline warns that pods are left at the deadline (on the NodeMaintenance), or that
	// a pod was deleted for it (on the Pod and its Node).
	EventPastDeadline = ConditionPastDeadline
	// EventNodeGivenBack warns that a deadline has given back nodes that were not drained (on the
	// NodeMaintenance and on each Node).
	EventNodeGivenBack = "NodeGivenBack"
)
