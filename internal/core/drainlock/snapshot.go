package drainlock

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// Snapshot is everything that the next step of one node depends on.
type Snapshot struct {
	// Now is the time of the decision.
	Now time.Time
	// ClockSkewed is true while that is not trusted; see package skew.
	ClockSkewed bool
	// Record is the record of the node; its name is that of the node.
	Record *v1alpha1.DrainRecord
	// Node is the node; nil if it is gone.
	Node *corev1.Node
	// Pods are all pods of the node.
	Pods []*corev1.Pod
	// Budgets are all for whose locks the record asks, and one at least that concerns
	// it without, if there is any; see Concerns. One that is asked for and missing
	// does not exist.
	Budgets []*policyv1.PodDisruptionBudget
	// Away are other nodes that bear a promise, by the UID of a budget that protects a pod
	// there. It has those of budgets that the record asks for and that were not confirmed.
	Away map[types.UID]string
	// Watched is true if Away was read where the promise of this node was seen, too, so
	// that every promise that is older was.
	Watched bool
	// Live is true if the node, the budgets, and after them the pods were just read from
	// the API server and not from a cache, as NeedsLive and Wavers ask for.
	Live bool
	// Busy are budgets for whose pods evictions of our own are under way.
	Busy map[types.NamespacedName]bool
	// Refused is why writes to budgets and deletions of pods failed lately, by the UID
	// of the object. Nothing is done to it now.
	Refused map[types.UID]string
	// Mutex is v1alpha1.DrainLockMutex; nil if there is none.
	Mutex *coordinationv1.Lease
	// MutexRecord is the record of the node that holds the mutex; nil if there is
	// none, or if nobody holds the mutex.
	MutexRecord *v1alpha1.DrainRecord
	// Ahead is the record of a node that has its turn before this one, and Earlier how
	// many wait for longer; see Turn.
	Ahead   *v1alpha1.DrainRecord
	Earlier int
	// Longest is how long a lock may hold; see budget.LockOf.
	Longest time.Duration
}

// Decision is what happens next to the locks of one node: first the status is
// written, then the step is done. Whoever has done a step decides again.
type Decision struct {
	// Status is to be written first; nil if the record says it already.
	Status *v1alpha1.DrainRecordStatus
	// Step is the one write that follows; its kind is empty if nothing is to be done.
	Step Step
	// Events become true with the status, those of the step with the step.
	Events []event.Event
	// RequeueAfter is when time alone changes the decision; 0 is never.
	RequeueAfter time.Duration
}

// StepKind is the kind of a step.
type StepKind string

// The steps of the protocol.
const (
	// TakeMutex writes Step.Mutex, which names this node as the holder.
	TakeMutex StepKind = "TakeMutex"
	// GiveMutex writes Step.Mutex, which names nobody.
	GiveMutex StepKind = "GiveMutex"
	// WriteLock sets the annotation of Step.Budget to Step.Lock: to take a lock or to
	// renew it.
	WriteLock StepKind = "WriteLock"
	// RemoveLock removes the annotation of Step.Budget.
	RemoveLock StepKind = "RemoveLock"
	// WritePromise sets the annotation of Step.Node to Step.Promise, RemovePromise removes it.
	WritePromise  StepKind = "WritePromise"
	RemovePromise StepKind = "RemovePromise"
	// DeletePod deletes Step.Pod, by UID, whatever its budgets allow.
	DeletePod StepKind = "DeletePod"
	// Finish deletes the record.
	Finish StepKind = "Finish"
)

// Step is one write, under the resource version of what it changes.
type Step struct {
	Kind StepKind
	// Mutex is the Lease as it is to be; without a resource version it is created.
	// Only its spec counts, and its resource version.
	Mutex *coordinationv1.Lease
	// Budget is the budget as it was observed, Lock the annotation that it gets.
	Budget *policyv1.PodDisruptionBudget
	Lock   string
	// Stray is true of a lock that is removed and that the record does not ask for.
	Stray bool
	// Node is the node as it was observed, Promise the annotation that it gets.
	Node    *corev1.Node
	Promise string
	// Pod is the pod as it was observed.
	Pod *corev1.Pod
	// Events become true with the step.
	Events []event.Event
}
