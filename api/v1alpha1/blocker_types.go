package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Blocker is one reason why pods of a node do not leave, and what helps.
type Blocker struct {
	// type is the reason. Expect values that are not among the BlockerType constants, and show
	// them with their message.
	// +required
	Type BlockerType `json:"type"`
	// object is the blocking object. Unset if it is unknown.
	// +optional
	Object BlockerObject `json:"object,omitzero"`
	// podCount is the number of pods that it blocks on this node.
	// +required
	PodCount int32 `json:"podCount"`
	// sinceTime is the time when it was first seen.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
	// message describes the cause, with the API server's text if there is one.
	// +required
	Message string `json:"message"`
	// suggestion describes what helps.
	// +optional
	Suggestion string `json:"suggestion,omitempty"`
}

// BlockerObject identifies what blocks. An Evacuator, named by its class, and a Webhook, named by
// the API server, are not API objects and have no apiVersion.
type BlockerObject struct {
	// apiVersion is the group and version. Unset for an Evacuator and a Webhook.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind of the object.
	// +required
	Kind string `json:"kind"`
	// namespace of the object. Unset for cluster-scoped kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +required
	Name string `json:"name"`
	// uid of the object, if it was seen.
	// +optional
	// +kubebuilder:validation:Type=string
	UID types.UID `json:"uid,omitempty"`
}

// BlockerType is the reason why a pod does not leave. Expect values that are not among the
// constants.
type BlockerType string

// Types of blockers. They say why a pod does not leave its node.
const (
	// BlockerPDBExhausted is a PodDisruptionBudget that currently allows no disruption.
	BlockerPDBExhausted BlockerType = "PDBExhausted"
	// BlockerPDBUnsatisfiable is a PodDisruptionBudget that can never allow a disruption.
	BlockerPDBUnsatisfiable BlockerType = "PDBUnsatisfiable"
	// BlockerMultiplePDBs is a pod with several budgets, which the eviction API rejects.
	BlockerMultiplePDBs BlockerType = "MultiplePDBs"
	// BlockerPDBLocked is a budget that another drain or its owner has locked.
	BlockerPDBLocked BlockerType = "PDBLocked"
	// BlockerClockSkewed means that the manager's clock differs too much from the API server's.
	// Time-based, irreversible actions are paused.
	BlockerClockSkewed BlockerType = "ClockSkewed"
	// BlockerWebhookDenied is an eviction that an admission webhook denied.
	BlockerWebhookDenied BlockerType = "WebhookDenied"
	// BlockerEvictionError is an eviction that failed for another reason.
	BlockerEvictionError BlockerType = "EvictionError"
	// BlockerNamespaceTerminating is a namespace that is being deleted.
	BlockerNamespaceTerminating BlockerType = "NamespaceTerminating"
	// BlockerTerminatingFinalizer is a deleted pod that waits for a finalizer.
	BlockerTerminatingFinalizer BlockerType = "TerminatingFinalizer"
	// BlockerTerminatingGrace is a pod that still exists after its grace period.
	BlockerTerminatingGrace BlockerType = "TerminatingGrace"
	// BlockerNodeUnreachable is a node whose kubelet does not respond.
	BlockerNodeUnreachable BlockerType = "NodeUnreachable"
	// BlockerEvacuatorRunning is an active evacuator.
	BlockerEvacuatorRunning BlockerType = "EvacuatorRunning"
	// BlockerReplacementUnschedulable is a pod whose replacement cannot be scheduled.
	BlockerReplacementUnschedulable BlockerType = "ReplacementUnschedulable"
	// BlockerEvictionRequestFailed is a pod whose EvictionRequest has failed.
	BlockerEvictionRequestFailed BlockerType = "EvictionRequestFailed"
	// BlockerEvictionRequestPending is a pod with evictionResponders that cannot be requested yet.
	BlockerEvictionRequestPending BlockerType = "EvictionRequestPending"
	// BlockerWaitingForCompletion is a pod that must finish on its own.
	BlockerWaitingForCompletion BlockerType = "WaitingForCompletion"
	// BlockerDrainRuleUnclear is a pod for which a MachineDrainRule, or what it selects on, could
	// not be read.
	BlockerDrainRuleUnclear BlockerType = "DrainRuleUnclear"
	// BlockerRecreated is a pod that its controller creates again on the same node.
	BlockerRecreated BlockerType = "Recreated"
	// BlockerEvacuationRefused is a pod whose Evacuation the API server refuses.
	BlockerEvacuationRefused BlockerType = "EvacuationRefused"
	// BlockerDeletionRefused is a pod past a deadline whose deletion the API server refuses.
	BlockerDeletionRefused BlockerType = "DeletionRefused"
	// BlockerWithdrawalRefused is an Evacuation that cannot be withdrawn.
	BlockerWithdrawalRefused BlockerType = "WithdrawalRefused"
	// BlockerCordonRefused is a node whose cordon cannot be changed.
	BlockerCordonRefused BlockerType = "CordonRefused"
	// BlockerRecordRefused is a node whose DrainRecord the API server refuses.
	BlockerRecordRefused BlockerType = "RecordRefused"
	// BlockerForeignUncordon is a user or tool that repeatedly uncordons the node.
	BlockerForeignUncordon BlockerType = "ForeignUncordon"
	// BlockerForeignDrain is another tool that drains the node. Both drains continue. A node that
	// is removed afterwards stays cordoned.
	BlockerForeignDrain BlockerType = "ForeignDrain"
	// BlockerNodeAgentDown is a node whose agent does not respond.
	BlockerNodeAgentDown BlockerType = "NodeAgentDown"
	// BlockerNodeBudget is a node that waits for a NodeBudget.
	BlockerNodeBudget BlockerType = "NodeBudget"
)

// The reasons why a pod stays on its node on purpose.
const (
	// RetainedNoEvacuator is a DaemonSet or static pod that no evacuator can move.
	RetainedNoEvacuator BlockerType = "NoEvacuator"
	// RetainedDrainLabel is a pod whose label asks to skip it.
	RetainedDrainLabel BlockerType = "DrainLabel"
	// RetainedDrainRule is a pod that a MachineDrainRule skips.
	RetainedDrainRule BlockerType = "DrainRule"
	// RetainedDrainDepth is a pod of a type below spec.drainDepth.
	RetainedDrainDepth BlockerType = "DrainDepth"
	// RetainedInPlace is a pod that stays while its node is away (skip-drain-on-upgrade).
	RetainedInPlace BlockerType = "InPlace"
)
