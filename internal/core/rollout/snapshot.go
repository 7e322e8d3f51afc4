// Package rollout decides about all NodeRollouts together: which nodes start, what has become of
// those that did, and what each rollout reports. What an attempt has come to is read from its
// NodeMaintenance; the status of a rollout is only read for the record of its starts.
package rollout

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

// Snapshot holds everything that a decision depends on. Nothing in it is changed.
type Snapshot struct {
	Now         time.Time
	ClockSkewed bool
	Rollouts    []*v1alpha1.NodeRollout
	Nodes       []*corev1.Node
	// Live is true if the nodes were read from the API server for this decision.
	Live bool
	// Maintenances are all NodeMaintenances. They include those that status.working of a rollout
	// names, as far as the API server has them.
	Maintenances []*v1alpha1.NodeMaintenance
	// Budgets are all NodeBudgets.
	Budgets []*v1alpha1.NodeBudget
	// Unknown are the names of NodeMaintenances in status.working of rollouts and budgets that could
	// not be read.
	Unknown map[string]bool
	// Jobs holds those of rollouts. JobNamespaces has the namespaces that may have them, with false
	// while theirs are unknown. RefusedJobs are by JobStart.Key.
	Jobs          []*batchv1.Job
	JobNamespaces map[string]bool
	RefusedJobs   map[string]JobRefusal
	// Refused has the errors of the last creation or change of a NodeMaintenance, by its name.
	Refused map[string]string
	// RefusedBudgets has the errors of the last write of a NodeBudget, by its name.
	RefusedBudgets map[string]string
	// Answers holds answers to Questions of earlier decisions, also old ones.
	Answers map[Question]Answer
	// MachineKinds are those that may be deleted, and Unreplaced why that of a node was not, by the
	// name of its NodeMaintenance.
	MachineKinds MachineKinds
	Unreplaced   map[string]Unreplaced
}

// Decision holds the actions for all rollouts.
type Decision struct {
	// Rollouts are in the order of their age.
	Rollouts []RolloutDecision
	// Budgets are in the order of their names.
	Budgets []BudgetDecision
	// Orphans release the NodeMaintenances of rollouts that do not exist in the snapshot. They are
	// made only if the API server does not have the rollout either.
	Orphans []Change
	// NeedsLive is true if a live snapshot has to confirm that a rollout is complete.
	NeedsLive bool
	// Questions lists facts that would change the decision, the most urgent first.
	Questions []Question
	// WakeTime is the next time at which the decision can change without another change; zero is never.
	WakeTime time.Time
}

// RolloutDecision holds the actions for one rollout, in the order of its fields. A failure ends it,
// except that changes are independent of each other.
type RolloutDecision struct {
	// Rollout is the rollout of the snapshot.
	Rollout *v1alpha1.NodeRollout
	// AddFinalizer and RemoveFinalizer concern v1alpha1.RolloutFinalizer of the rollout.
	AddFinalizer, RemoveFinalizer bool
	// Budgets are the names of the NodeBudgets that select a node of Starts. Their status is to be
	// written first, also if it is the same: the write is refused if the budget has changed.
	Budgets []string
	// Status is to be written if it differs, before Starts, under the resourceVersion of Rollout.
	Status v1alpha1.NodeRolloutStatus
	// Starts are to be created. One that exists already is no error: another decision follows.
	Starts []*v1alpha1.NodeMaintenance
	// Changes of NodeMaintenances, by name.
	Changes []Change
	// Jobs are to be created. One that exists already is no error: another decision follows.
	Jobs []JobStart
	// StopJobs are to be deleted.
	StopJobs []*batchv1.Job
	// Replacements delete the machines of drained nodes.
	Replacements []Replacement
	// Events are to be published after everything else.
	Events []event.Event
}

// BudgetDecision holds the status of a NodeBudget.
type BudgetDecision struct {
	// Budget is the NodeBudget of the snapshot.
	Budget *v1alpha1.NodeBudget
	// Status is to be written if it differs, under the resourceVersion of Budget.
	Status v1alpha1.NodeBudgetStatus
}

// Change is a change of a NodeMaintenance.
type Change struct {
	// Before is the object of the snapshot, After the object to write.
	Before, After *v1alpha1.NodeMaintenance
	// Delete deletes the object. After is left to the decision that sees it deleted.
	Delete bool
}

// Attempt is the record of an attempt in v1alpha1.RolloutAttemptAnnotation.
type Attempt struct {
	UID     string `json:"uid"`
	NodeUID string `json:"nodeUID"`
	// Target is a hash of spec.target, when, reboot and job.
	Target string `json:"target"`
	// Attempt counts all attempts of the node, Try those in a row that did not drain in time; both
	// from 1.
	Attempt int32 `json:"attempt"`
	Try     int32 `json:"try"`

	handover.Job
	// Replaced is the state of the machine of the node; nil before its deletion.
	Replaced *Replaced `json:"replaced,omitempty"`
}
