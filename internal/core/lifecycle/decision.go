package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

// Step is where the life of a Machine stands, for logs and metrics. The steps of
// a deletion have the names of the reasons of condition Deleting.
type Step string

const (
	// StepPaused touches nothing, because the Cluster is paused.
	StepPaused Step = v1alpha1.ReasonPaused
	// StepUnknown touches nothing, because the Cluster could not be read.
	StepUnknown Step = v1alpha1.ReasonUnknown
	// StepReleased has nothing to do any more: the Machine is being deleted and we
	// do not hold it.
	StepReleased Step = "Released"

	// StepCreatable waits for the Cluster and for preCreate hooks.
	StepCreatable Step = "WaitingForPreCreateHook"
	// StepBootstrap waits for the bootstrap data.
	StepBootstrap Step = "WaitingForBootstrap"
	// StepInfrastructure waits for the infrastructure.
	StepInfrastructure Step = "WaitingForInfrastructure"
	// StepNode waits for the Node.
	StepNode Step = "WaitingForNode"
	// StepRunning has everything.
	StepRunning Step = "Running"

	// StepRecord writes down what the deletion relies on.
	StepRecord Step = "Recording"
	// StepPreDrainHook waits for pre-drain hooks.
	StepPreDrainHook Step = v1alpha1.ReasonWaitingForPreDrainHook
	// StepDrain drains the Node.
	StepDrain Step = v1alpha1.ReasonDrainingNode
	// StepVolumeDetach waits for the volumes of the Node.
	StepVolumeDetach Step = v1alpha1.ReasonWaitingForVolumeDetach
	// StepPreTerminateHook waits for pre-terminate hooks.
	StepPreTerminateHook Step = v1alpha1.ReasonWaitingForPreTerminateHook
	// StepDeleteInfrastructure deletes the infrastructure.
	StepDeleteInfrastructure Step = v1alpha1.ReasonWaitingForInfrastructureDeletion
	// StepDeleteBootstrap deletes the bootstrap config.
	StepDeleteBootstrap Step = v1alpha1.ReasonWaitingForBootstrapDeletion
	// StepDeleteNode deletes the Node.
	StepDeleteNode Step = v1alpha1.ReasonDeletingNode
	// StepDone drops the finalizer.
	StepDone Step = v1alpha1.ReasonDeletionCompleted
)

// Decision is what happens next. The shell carries it out in this order: it adds
// the finalizer and returns; it records ProviderID and Status and returns if
// Record says so; it acts; it writes Status; it drops the finalizer.
type Decision struct {
	// Step is where the Machine stands.
	Step Step
	// Since is when that step of a deletion began; zero if it has no beginning.
	Since time.Time
	// AddFinalizer holds the Machine before anything is made for it; nothing else
	// is done then.
	AddFinalizer bool
	// DropFinalizer lets it go.
	DropFinalizer bool
	// Status is the complete status.
	Status v1alpha1.MachineStatus
	// Record is true if ProviderID or Status hold something that must be in the
	// API before what relies on it is done. Nothing else is done then.
	Record bool
	// ProviderID is to be set in the spec; empty leaves it as it is.
	ProviderID string
	// AdoptBootstrap and AdoptInfrastructure make the Machine the controlling
	// owner of the object, which is what starts the object's own controller.
	AdoptBootstrap, AdoptInfrastructure bool
	// Cordon is to be made unschedulable; nil for none. A failure to do so holds
	// up nothing else but the drain.
	Cordon *corev1.Node
	// Drain is what happens to the pods; nil unless they are being drained, or
	// come late and hold volumes that are waited for. The pods to be evicted are
	// Drain.Evict, and none if it is nil.
	Drain *nodedrain.Decision
	// DrainStarts is true when pods begin to leave, again after they could not be
	// read; DrainEnds when no more have to. For logs.
	DrainStarts, DrainEnds bool
	// NodeMissing is true if the decision goes on with that there is no Node of the
	// Machine's providerID. Ask the API server before it is believed.
	NodeMissing bool
	// DeleteInfrastructure and DeleteBootstrap delete the object, with its UID and
	// resource version as precondition.
	DeleteInfrastructure, DeleteBootstrap bool
	// DeleteNode is to be deleted, with its UID as precondition; nil for none.
	DeleteNode *corev1.Node
	// RequeueAfter is when time alone would change the decision; 0 is never.
	RequeueAfter time.Duration
	// Events become true with Status.
	Events []event.Event
}
