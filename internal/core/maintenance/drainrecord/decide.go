// Package drainrecord decides about the DrainRecord of a node, by which budgets of pods that stay
// on it are locked. It is written when only pods that stay are left, so that a node that still
// waits for others blocks no other node; from then on it is kept up to date until the last
// maintenance in place is over.
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

// Node holds what the DrainRecord of a node depends on. Its pods are known.
type Node struct {
	Object *corev1.Node
	Record *v1alpha1.DrainRecord
	// Unclear is true if an invalid maintenance holds the node: what it needs is unknown.
	Unclear bool
	// InPlace is the oldest maintenance in Drain that leaves pods on the node; nil if none does.
	InPlace *v1alpha1.NodeMaintenance
	// Staying are the pods that stay for it, Budgets those that protect them. Torn is true if
	// another maintenance removes a pod under a budget that one would leave there: until it is
	// gone the node must not go, and nothing is locked for it.
	Staying []*corev1.Pod
	Budgets []*policyv1.PodDisruptionBudget
	Torn    bool
	// Leaving are pods to be evicted, WaitedBy the maintenances that wait for pods.
	Leaving  []*corev1.Pod
	WaitedBy []string
	Pods     []*corev1.Pod // all of them, finished ones too
}

// Change is the wanted DrainRecord of a node, written under the resource version of Old.
type Change struct {
	// Old is nil if the record is created.
	Old  *v1alpha1.DrainRecord
	Spec v1alpha1.DrainRecordSpec
}

// Decision holds what is done to the DrainRecord of a node, and the state of its locks.
type Decision struct {
	// Change is nil if nothing is written.
	Change   *Change
	Complete bool
	// Returned is the time of the node's return, after which it needs no lock; zero before.
	Returned time.Time
	// Needed counts the budgets that have to be locked, Taken those that are.
	Needed, Taken int
	// Waiting and Blockers tell what the node waits for while a lock is missing.
	Waiting  string
	Blockers []v1alpha1.Blocker
}

// Decide decides about the DrainRecord of a node. Longest bounds a lock; 0 is budget.LongestLock.
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

func recordWith(n *Node, spec v1alpha1.DrainRecordSpec) *v1alpha1.DrainRecord {
	record := &v1alpha1.DrainRecord{}
	if n.Record != nil {
		*record = *n.Record
	}
	record.Name, record.Spec = n.Object.Name, spec
	return record
}

// taken counts the needed budgets whose lock is confirmed.
func taken(record *v1alpha1.DrainRecord, spec v1alpha1.DrainRecordSpec) int {
	locked := 0
	for _, lock := range record.Status.Locks {
		if lock.ConfirmedTime != nil && slices.Contains(spec.Budgets, lock.BudgetReference) {
			locked++
		}
	}
	return locked
}

// explain returns what the node waits for before its budgets are locked.
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

// complete releases the locks when their pods are ready again. Pods that have to leave now are
// left out, because a lock would keep those that never get ready.
func complete(n *Node) *Change {
	over := n.Record.Spec
	over.Complete = true
	for _, leaving := range n.Leaving {
		over.Pods = slices.DeleteFunc(slices.Clone(over.Pods), func(pod v1alpha1.StayingPod) bool { return pod.UID == leaving.UID })
	}
	return write(n, over)
}

// write returns the change of the record, if there is one. A record under deletion, which a foreign
// finalizer may keep forever, takes no change but its completion.
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

// sameNeeds compares the pods of every node that is away, so it avoids reflection for them.
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

// InForce returns true if the record of a node is that of the present drain.
func InForce(node *corev1.Node, record *v1alpha1.DrainRecord) bool {
	return record != nil && !record.Spec.Complete && !stale(node, record)
}

// stale returns true if the record has to go before there is another one: it is being deleted, is
// about an older node of this name, or is complete and has given up budgets.
func stale(node *corev1.Node, record *v1alpha1.DrainRecord) bool {
	return record != nil && (record.DeletionTimestamp != nil ||
		node.CreationTimestamp.After(record.CreationTimestamp.Time) ||
		record.Spec.Complete && len(record.Status.GivenUp) > 0)
}
