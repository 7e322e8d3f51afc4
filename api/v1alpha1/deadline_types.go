package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Deadline is until when the pods have to be gone, because the nodes are then shut
// down, taken away or needed otherwise.
type Deadline struct {
	// time is when the nodes are to be empty, such as 2026-03-01T22:00:00Z. It may be
	// changed until the maintenance is complete.
	// +required
	Time metav1.Time `json:"time"`

	// onDeadline is what becomes of the pods that are left: Wait goes on as before and
	// says that the deadline has passed and who is left, and Delete deletes them past their
	// disruption budgets, which only a user with the verb bypass-budgets on
	// nodemaintenances may ask for. Defaults to Wait.
	// +optional
	// +default="Wait"
	OnDeadline DeadlineAction `json:"onDeadline,omitempty"`

	// deleteBeforeSeconds is how long before time the deletions begin, 3 to 86400. Pods
	// are deleted lowest priority first, with their grace periods as far as these end two
	// seconds before time. It means nothing with Wait. Defaults to 60, twice the usual
	// grace period.
	// +optional
	// +default=60
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=86400
	DeleteBeforeSeconds int32 `json:"deleteBeforeSeconds,omitempty"`
}

// DeadlineAction is what is done about pods that are left at a deadline.
//
// +kubebuilder:validation:Enum=Wait;Delete
// +kubebuilder:validation:MaxLength=6
type DeadlineAction string

const (
	// DeadlineWait waits for the pods and says that they are late.
	DeadlineWait DeadlineAction = "Wait"
	// DeadlineDelete deletes the pods, whatever their budgets allow.
	DeadlineDelete DeadlineAction = "Delete"
)

// Conditions of a NodeMaintenance with a deadline.
const (
	// ConditionPastDeadline says, in stage Drain, whether pods are left at the deadline,
	// and what becomes of them. It is Unknown with ReasonClockSkewed while nobody knows
	// whether the deadline has come.
	ConditionPastDeadline = "PastDeadline"
)

// Reasons of ConditionPastDeadline.
const (
	// ReasonDeadlineAhead: the deadline has not come.
	ReasonDeadlineAhead = "DeadlineAhead"
	// ReasonDeadlineMet: the deadline has come, and no pod is left.
	ReasonDeadlineMet = "DeadlineMet"
	// ReasonDeadlineTooEarly: the deadline had passed before the drain began, so that
	// nothing is deleted because of it.
	ReasonDeadlineTooEarly = "DeadlineTooEarly"
	// ReasonDeletingPods: pods are left and are deleted.
	ReasonDeletingPods = "DeletingPods"
	// ReasonWaitingForPods: the deadline has passed, and pods are left that are not deleted.
	ReasonWaitingForPods = "WaitingForPods"
)

// Reasons of events about deadlines.
const (
	// EventPastDeadline warns, on a NodeMaintenance, that pods are left at its deadline
	// and, on a Pod and its Node, that it was deleted for that. It is for the audit.
	EventPastDeadline = ConditionPastDeadline
)
