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
	Now         time.Time
	ClockSkewed bool
	Record      *v1alpha1.DrainRecord
	// Node is nil if it is gone.
	Node *corev1.Node
	Pods []*corev1.Pod
	// Budgets are all that the record asks for, and at least one that otherwise concerns it, if
	// any; see Concerns. A missing one does not exist.
	Budgets []*policyv1.PodDisruptionBudget
	// Away maps UIDs of budgets to another node with a promise and a pod under the budget, for
	// requested budgets that are not confirmed.
	Away map[types.UID]string
	// Watched is true if Away was read from a cache that showed the promise of this node, and
	// therefore all older ones.
	Watched bool
	// Live is true if the node, the budgets, and after them the pods were read from the API server,
	// as NeedsLive and Wavers request.
	Live bool
	// Busy are budgets with own evictions in flight.
	Busy map[types.NamespacedName]bool
	// Refused holds the errors of recent writes by the UID of the object. Such an object is left
	// alone for now.
	Refused     map[types.UID]string
	Mutex       *coordinationv1.Lease
	MutexRecord *v1alpha1.DrainRecord
	// Ahead is the record of a node that goes before this one, Earlier the number of nodes that
	// have waited longer; see Precedes.
	Ahead   *v1alpha1.DrainRecord
	Earlier int
	// Longest is the maximal duration of a lock; see budget.LockOf.
	Longest time.Duration
}

// Decision is the next step for the locks of one node: the status is written first, then the step
// is done and the record is decided again.
type Decision struct {
	// Status is nil if the record already has it.
	Status       *v1alpha1.DrainRecordStatus
	Step         Step
	Events       []event.Event
	RequeueAfter time.Duration
}

// StepKind is the kind of a step.
type StepKind string

// The steps of the protocol.
const (
	// TakeMutex writes Step.Mutex with this node as holder.
	TakeMutex StepKind = "TakeMutex"
	// GiveMutex writes Step.Mutex without a holder.
	GiveMutex StepKind = "GiveMutex"
	// WriteLock takes or renews the lock of Step.Budget.
	WriteLock  StepKind = "WriteLock"
	RemoveLock StepKind = "RemoveLock"
	// WritePromise sets the annotation of Step.Node to Step.Promise.
	WritePromise  StepKind = "WritePromise"
	RemovePromise StepKind = "RemovePromise"
	// DeletePod deletes Step.Pod by UID, ignoring its budgets.
	DeletePod StepKind = "DeletePod"
	Finish    StepKind = "Finish"
)

// Step is one write, under the resource version of the observed object.
type Step struct {
	Kind StepKind
	// Mutex is created if it has no resource version. Only its spec and resource version matter.
	Mutex  *coordinationv1.Lease
	Budget *policyv1.PodDisruptionBudget
	Lock   string
	// Stray is true if the record does not ask for the removed lock.
	Stray   bool
	Node    *corev1.Node
	Promise string
	Pod     *corev1.Pod
	Events  []event.Event
}
