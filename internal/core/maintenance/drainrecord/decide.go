// Package drainrecord decides what the DrainRecord of a node says, by which budgets of pods
// that stay on it are locked, and how far these locks are. It is written when nothing but pods
// that stay is left, so that a node that still waits for others holds nobody up; from then on
// it is kept up to date until the last maintenance in place is over.
package drainrecord

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// Node is a node as far as its DrainRecord is concerned. Its pods are known.
type Node struct {
	Object *corev1.Node
	// Record is as it was observed; nil if there is none.
	Record *v1alpha1.DrainRecord
	// Unclear is true if a maintenance holds the node whose spec is not understood: what it
	// needs is unknown.
	Unclear bool
	// InPlace is the oldest maintenance in Drain that leaves pods on the node; nil if none does.
	InPlace *v1alpha1.NodeMaintenance
	// Staying are the pods that stay for it, Budgets those that protect them. Torn is true if
	// another maintenance removes a pod under a budget that one would leave there: until it is
	// gone the node must not go, and nothing is locked for it.
	Staying []*corev1.Pod
	Budgets []*policyv1.PodDisruptionBudget
	Torn    bool
	// Leaving are the pods that have to be evicted yet, WaitedBy the names of the maintenances
	// that wait for pods.
	Leaving  []*corev1.Pod
	WaitedBy []string
	// Pods are all pods of the node, finished ones too.
	Pods []*corev1.Pod
}

// Change is what the DrainRecord of a node is to say. It is written under the
// resource version of the record as it was observed.
type Change struct {
	// Old is the record as it was observed; nil creates it.
	Old *v1alpha1.DrainRecord
	// Spec is the complete spec to be written.
	Spec v1alpha1.DrainRecordSpec
}

// Decision is what becomes of the DrainRecord of a node, and how far its locks are.
type Decision struct {
	// Change is nil if nothing is written.
	Change *Change
	// Complete is true if every budget that is needed is locked, or none is.
	Complete bool
	// Returned is since when the node is back, so that no lock is needed any more; zero
	// if it is not.
	Returned time.Time
	// Needed and Taken are how many budgets are to be locked and are.
	Needed, Taken int
	// Waiting says what the node waits for while a lock is missing, Blockers who is
	// in the way.
	Waiting  string
	Blockers []v1alpha1.Blocker
}

// Decide decides about the DrainRecord of a node. Longest is how long a lock may hold; 0 is
// budget.LongestLock.
func Decide(n Node, now time.Time, longest time.Duration) Decision {
	if n.InPlace == nil {
		if n.Record == nil {
			return Decision{}
		}
		return Decision{Change: complete(&n)}
	}
	need := drainlock.Need{Maintenance: n.InPlace, Staying: n.Staying, Budgets: n.Budgets}
	inForce := InForce(n.Object, n.Record)
	if inForce {
		need.Record = n.Record
	}
	spec := drainlock.Needs(need)
	d := Decision{Needed: len(spec.Budgets)}
	switch {
	case stale(n.Object, n.Record):
		d.Change = complete(&n)
	case inForce:
		d.Taken = taken(n.Record, spec)
		d.Complete = !n.Torn && drainlock.Holds(n.Record, spec.Budgets)
		written := spec
		if need.Leaving = n.Leaving; len(need.Leaving) > 0 {
			written = drainlock.Needs(need)
		}
		d.Change = write(&n, written)
	case n.Object.Spec.Unschedulable && len(n.WaitedBy) == 0:
		d.Change = write(&n, spec)
	}
	if d.Returned = drainlock.ReturnedTime(recordWith(&n, spec)); !d.Returned.IsZero() && inForce {
		d.Complete, d.Needed, d.Taken = !n.Torn, 0, 0
	}
	if !d.Complete {
		d.Waiting, d.Blockers = explain(&n, spec, now, longest)
	}
	return d
}

// recordWith is the record as it is to be. What is locked for it already stays so.
func recordWith(n *Node, spec v1alpha1.DrainRecordSpec) *v1alpha1.DrainRecord {
	record := &v1alpha1.DrainRecord{}
	if n.Record != nil {
		*record = *n.Record
	}
	record.Name, record.Spec = n.Object.Name, spec
	return record
}

// taken is how many of the budgets that are needed are locked for good.
func taken(record *v1alpha1.DrainRecord, spec v1alpha1.DrainRecordSpec) int {
	locked := 0
	for _, lock := range record.Status.Locks {
		if lock.ConfirmedTime != nil && slices.Contains(spec.Budgets, lock.BudgetReference) {
			locked++
		}
	}
	return locked
}

// explain says what the node waits for before its budgets are locked.
func explain(n *Node, spec v1alpha1.DrainRecordSpec, now time.Time, longest time.Duration) (string, []v1alpha1.Blocker) {
	then := "."
	if len(spec.Budgets) > 0 {
		then = "; then " + phrase.Count(len(spec.Budgets), "budget") + " will be locked."
	}
	switch {
	case len(n.WaitedBy) > 0:
		return "Waiting for the pods that leave for " + strings.Join(n.WaitedBy, ", ") + then, nil
	case !n.Object.Spec.Unschedulable:
		return "Waiting for the node to be cordoned" + then, nil
	case n.Unclear:
		return "Waiting for a maintenance of the node whose spec is invalid" + then, nil
	case stale(n.Object, n.Record):
		return "Waiting for the DrainRecord of an earlier drain to go" + then, nil
	}
	facts := drainlock.Facts{Now: now, Record: recordWith(n, spec), Pods: n.Pods, Budgets: n.Budgets, Longest: longest}
	waiting := drainlock.Waiting(facts)
	if waiting == "" {
		waiting = fmt.Sprintf("Waiting for the locks of %s.", phrase.Count(len(spec.Budgets), "budget"))
	}
	return waiting, drainlock.Blockers(facts)
}

// complete has the locks go when their pods are ready again. Nobody waits for
// those that have to leave now: a lock would keep the ones that never get ready.
func complete(n *Node) *Change {
	over := n.Record.Spec
	over.Complete = true
	for _, leaving := range n.Leaving {
		over.Pods = slices.DeleteFunc(slices.Clone(over.Pods), func(pod v1alpha1.StayingPod) bool { return pod.UID == leaving.UID })
	}
	return write(n, over)
}

// write has the record say what it does not say yet. One that is on its way
// out takes no change but that it is complete, as somebody's finalizer may hold it
// for ever, and its name is taken until it is gone. While a maintenance that is not
// understood holds the node, what it needs is unknown.
func write(n *Node, spec v1alpha1.DrainRecordSpec) *Change {
	switch {
	case n.Unclear:
	case n.Record == nil:
		return &Change{Spec: spec}
	case (spec.Complete || n.Record.DeletionTimestamp == nil) && !sameNeeds(n.Record.Spec, spec):
		return &Change{Old: n.Record, Spec: spec}
	}
	return nil
}

// sameNeeds is equality, faster where it matters: a decision compares the pods of
// every node that is away.
func sameNeeds(a, b v1alpha1.DrainRecordSpec) bool {
	if !slices.EqualFunc(a.Pods, b.Pods, samePod) || !slices.Equal(a.Budgets, b.Budgets) {
		return false
	}
	a.Pods, b.Pods, a.Budgets, b.Budgets = nil, nil, nil, nil
	return equality.Semantic.DeepEqual(a, b)
}

func samePod(a, b v1alpha1.StayingPod) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Namespace == b.Namespace && slices.Equal(a.BudgetUIDs, b.BudgetUIDs)
}

// InForce returns true if the record of a node is that of the drain that goes on.
func InForce(node *corev1.Node, record *v1alpha1.DrainRecord) bool {
	return record != nil && !record.Spec.Complete && !stale(node, record)
}

// stale returns true if the record has to go before there is another one: it is on
// its way out, or what it has given up and waits for is no matter of this drain,
// because it is about an older node of this name or a maintenance that is over.
func stale(node *corev1.Node, record *v1alpha1.DrainRecord) bool {
	return record != nil && (record.DeletionTimestamp != nil ||
		node.CreationTimestamp.After(record.CreationTimestamp.Time) ||
		record.Spec.Complete && len(record.Status.GivenUp) > 0)
}
