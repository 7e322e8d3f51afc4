package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

// Step is the current step of a Machine, for logs and metrics. Steps of a deletion are named like
// the reasons of condition Deleting.
type Step string

// The steps of a creation, and those of a deletion from StepRecord on.
const (
	// StepPaused does nothing because the Cluster is paused.
	StepPaused Step = v1alpha1.ReasonPaused
	// StepUnknown does nothing because the Cluster could not be read.
	StepUnknown Step = v1alpha1.ReasonUnknown
	// StepReleased does nothing because the Machine is deleted and our finalizer is gone.
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

	// StepRecord records what the deletion relies on.
	StepRecord               Step = "Recording"
	StepPreDrainHook         Step = v1alpha1.ReasonWaitingForPreDrainHook
	StepDrain                Step = v1alpha1.ReasonDrainingNode
	StepVolumeDetach         Step = v1alpha1.ReasonWaitingForVolumeDetach
	StepPreTerminateHook     Step = v1alpha1.ReasonWaitingForPreTerminateHook
	StepDeleteInfrastructure Step = v1alpha1.ReasonWaitingForInfrastructureDeletion
	StepDeleteBootstrap      Step = v1alpha1.ReasonWaitingForBootstrapDeletion
	StepDeleteNode           Step = v1alpha1.ReasonDeletingNode
	StepDone                 Step = v1alpha1.ReasonDeletionCompleted
)

// Decision is carried out in this order: add the finalizer and return; record ProviderID and Status
// and return if Record is set; act; write Status; drop the finalizer.
type Decision struct {
	Step Step
	// Since is the start of that step of a deletion, if it has one.
	Since time.Time
	// AddFinalizer comes before anything is created for the Machine.
	AddFinalizer  bool
	DropFinalizer bool
	Status        v1alpha1.MachineStatus
	// Record is true if ProviderID or Status must be stored before any action.
	Record bool
	// ProviderID is written to the spec unless it is empty.
	ProviderID string
	// AdoptBootstrap and AdoptInfrastructure make the Machine the controller of the object.
	AdoptBootstrap, AdoptInfrastructure bool
	// Cordon is the Node to cordon. A failure only delays the drain.
	Cordon *corev1.Node
	// Drain is set while pods are drained, or are late and use volumes that are waited for.
	Drain *nodedrain.Decision
	// DrainStarts is true when pods begin to leave, DrainEnds when none has to. For logs.
	DrainStarts, DrainEnds bool
	// NodeMissing is true if a live read must confirm that no Node has the providerID.
	NodeMissing bool
	// DeleteInfrastructure and DeleteBootstrap delete the object by UID and resource version.
	DeleteInfrastructure, DeleteBootstrap bool
	DeleteNode                            *corev1.Node
	RequeueAfter                          time.Duration
	Events                                []event.Event
}
