package evacuation

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Snapshot is everything that a decision reads. It is never changed by Decide.
type Snapshot struct {
	Now         time.Time
	ClockSkewed bool
	// Fresh extends the deadline of our own evacuators after a start of Ebbtide; see Lenience.
	Fresh      time.Duration
	Evacuation *v1alpha1.Evacuation
	// Pod is the pod with the name in podRef and any UID; nil if there is none.
	Pod        *corev1.Pod
	Evacuators []v1alpha1.Evacuator
	Problems   []podclass.Problem
}

// State names the stage of an evacuation.
type State string

const (
	// StateDone means that the pod is gone or has finished.
	StateDone State = "done"
	// StateWithdrawn means that nobody calls the eviction API for the pod any more.
	StateWithdrawn State = "withdrawn"
	// StateCancelled means that nobody requests the evacuation any more.
	StateCancelled State = "cancelled"
	// StateForbidden means that nobody asks any more, but an evacuator forbids to cancel.
	StateForbidden State = "forbidden"
	// StateMismatched means that the object does not name its pod as it should.
	StateMismatched State = "mismatched"
	// StateTerminating means that the pod is on its way out.
	StateTerminating State = "terminating"
	// StateEvacuating means that an evacuator has its turn.
	StateEvacuating State = "evacuating"
	// StateEvicting means that no evacuator has its turn, the pod is to be evicted.
	StateEvicting State = "evicting"
	// StateHandedOver means that the pod is not replaced and that nobody requests more.
	StateHandedOver State = "handed-over"
	// StateUnevictable means that no evacuator has its turn and the pod is never evicted.
	StateUnevictable State = "unevictable"
)

// Decision holds the next steps. The shell carries them out in this order: it records Evacuators
// and returns, records Status, then acts: DropFinalizers, Delete, Evict. Events become true with
// the last of these.
type Decision struct {
	State   State
	Message string
	// Evacuators are written into the spec before anything else; nil if there are no new ones.
	Evacuators []v1alpha1.Evacuator
	// Status is the whole status to be written; nil if it stays as it is.
	Status         *v1alpha1.EvacuationStatus
	DropFinalizers []string
	// Delete is true if the object is deleted; in StateDone after Finished and together with
	// others.
	Delete bool
	// Evict is true if the pod is to be evicted, as soon as its budgets allow.
	Evict        bool
	RequeueAfter time.Duration
	// Events become true with the eviction, otherwise with Status, otherwise with the clean-up.
	Events []event.Event
}
