package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Blocker is one reason why pods of a node do not leave, and what to do about it.
type Blocker struct {
	// type is the kind of reason. The set is open: expect values that are not among
	// the BlockerType constants, and show them with their message.
	// +required
	Type BlockerType `json:"type"`
	// object is what blocks. Absent if nobody knows, such as which budget it was
	// that refused.
	// +optional
	Object BlockerObject `json:"object,omitzero"`
	// podCount is how many pods it holds back on this node.
	// +required
	PodCount int32 `json:"podCount"`
	// sinceTime is when it was first seen.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
	// message says what is in the way, in the API server's words where it gave any.
	// +required
	Message string `json:"message"`
	// suggestion says what would help.
	// +optional
	Suggestion string `json:"suggestion,omitempty"`
}

// BlockerObject identifies what blocks. Two kinds are no objects of an API and
// have no apiVersion: an Evacuator, which is named by its class, and a Webhook, as
// an API server names it when it refuses.
type BlockerObject struct {
	// apiVersion is the group and version. Absent for an Evacuator and a Webhook.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind of the object.
	// +required
	Kind string `json:"kind"`
	// namespace of the object. Absent if its kind has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +required
	Name string `json:"name"`
	// uid of the object, if it was seen; another one of the same name is another.
	// +optional
	// +kubebuilder:validation:Type=string
	UID types.UID `json:"uid,omitempty"`
}

// BlockerType is the kind of reason why a pod does not leave. The set is open:
// those that Ebbtide writes now are constants, and others may follow.
type BlockerType string

// Types of blockers. They say why a pod does not leave its node.
const (
	// BlockerPDBExhausted is a PodDisruptionBudget that allows no disruption now.
	BlockerPDBExhausted BlockerType = "PDBExhausted"
	// BlockerPDBUnsatisfiable is a PodDisruptionBudget that can never allow one.
	BlockerPDBUnsatisfiable BlockerType = "PDBUnsatisfiable"
	// BlockerMultiplePDBs is a pod under several budgets, which the eviction API refuses.
	BlockerMultiplePDBs BlockerType = "MultiplePDBs"
	// BlockerPDBLocked is a budget that another drain or its owner has locked.
	BlockerPDBLocked BlockerType = "PDBLocked"
	// BlockerClockSkewed is that the manager's clock is not trusted, so that nothing is
	// done because of the time that cannot be undone.
	BlockerClockSkewed BlockerType = "ClockSkewed"
	// BlockerWebhookDenied is an eviction that an admission webhook refused.
	BlockerWebhookDenied BlockerType = "WebhookDenied"
	// BlockerEvictionError is an eviction that failed for another reason.
	BlockerEvictionError BlockerType = "EvictionError"
	// BlockerNamespaceTerminating is a namespace that is being deleted.
	BlockerNamespaceTerminating BlockerType = "NamespaceTerminating"
	// BlockerTerminatingFinalizer is a pod that only a finalizer keeps.
	BlockerTerminatingFinalizer BlockerType = "TerminatingFinalizer"
	// BlockerTerminatingGrace is a pod that outlived its grace period.
	BlockerTerminatingGrace BlockerType = "TerminatingGrace"
	// BlockerNodeUnreachable is a node whose kubelet does not answer.
	BlockerNodeUnreachable BlockerType = "NodeUnreachable"
	// BlockerEvacuatorRunning is an evacuator that is at work.
	BlockerEvacuatorRunning BlockerType = "EvacuatorRunning"
	// BlockerReplacementUnschedulable is a pod that waits for its replacement, for which the
	// scheduler finds no node.
	BlockerReplacementUnschedulable BlockerType = "ReplacementUnschedulable"
	// BlockerEvictionRequestFailed is a pod whose EvictionRequest has failed, so that nobody
	// moves it any more.
	BlockerEvictionRequestFailed BlockerType = "EvictionRequestFailed"
	// BlockerEvictionRequestPending is a pod with evictionResponders that waits because they
	// cannot be asked yet.
	BlockerEvictionRequestPending BlockerType = "EvictionRequestPending"
	// BlockerWaitingForCompletion is a pod that is to finish by itself.
	BlockerWaitingForCompletion BlockerType = "WaitingForCompletion"
	// BlockerDrainRuleUnclear is a pod that waits because a MachineDrainRule, or
	// what it asks about, could not be read or understood.
	BlockerDrainRuleUnclear BlockerType = "DrainRuleUnclear"
	// BlockerRecreated is a pod whose owner puts it back on the same node.
	BlockerRecreated BlockerType = "Recreated"
	// BlockerEvacuationRefused is a pod whose Evacuation the API server refuses.
	BlockerEvacuationRefused BlockerType = "EvacuationRefused"
	// BlockerDeletionRefused is a pod past a deadline that the API server does not let us
	// delete.
	BlockerDeletionRefused BlockerType = "DeletionRefused"
	// BlockerWithdrawalRefused is an Evacuation that cannot be withdrawn.
	BlockerWithdrawalRefused BlockerType = "WithdrawalRefused"
	// BlockerCordonRefused is a node whose cordon the API server does not let us change.
	BlockerCordonRefused BlockerType = "CordonRefused"
	// BlockerRecordRefused is a node whose DrainRecord the API server refuses.
	BlockerRecordRefused BlockerType = "RecordRefused"
	// BlockerForeignUncordon is somebody who keeps making the node schedulable.
	BlockerForeignUncordon BlockerType = "ForeignUncordon"
	// BlockerForeignDrain is somebody else who drains the node. Both drains go on; a node that
	// is removed afterwards stays cordoned.
	BlockerForeignDrain BlockerType = "ForeignDrain"
	// BlockerNodeAgentDown is a node whose agent, which takes static pods down and brings
	// them back, does not answer.
	BlockerNodeAgentDown BlockerType = "NodeAgentDown"
)

// The reasons why a pod stays on its node on purpose.
const (
	// RetainedNoEvacuator is a DaemonSet or static pod that nobody can remove for good.
	RetainedNoEvacuator BlockerType = "NoEvacuator"
	// RetainedDrainLabel is a pod whose label asks to skip it.
	RetainedDrainLabel BlockerType = "DrainLabel"
	// RetainedDrainRule is a pod that a MachineDrainRule has skipped.
	RetainedDrainRule BlockerType = "DrainRule"
	// RetainedDrainDepth is a pod of a type below spec.drainDepth.
	RetainedDrainDepth BlockerType = "DrainDepth"
	// RetainedInPlace is a pod that stays while its node is away (skip-drain-on-upgrade).
	RetainedInPlace BlockerType = "InPlace"
)
