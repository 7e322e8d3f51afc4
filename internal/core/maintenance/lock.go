package maintenance

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
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

// lock is what becomes of the DrainRecord of a node in place, and how far its locks are.
type lock struct {
	change *DrainRecordChange
	// complete is true if every budget that is needed is locked, or none is.
	complete bool
	// returned is since when the node is back, so that no lock is needed any more; zero
	// if it is not.
	returned time.Time
	// needed and taken are how many budgets are to be locked and are.
	needed, taken int
	// waiting says what the node waits for while a lock is missing, blockers who is
	// in the way.
	waiting  string
	blockers []v1alpha1.Blocker
}

// lockOf decides about the DrainRecord of a node. It is written when nothing but
// pods that stay is left, so that a node that still waits for others holds nobody
// up; from then on it is kept up to date until the last maintenance in place is over.
func (t *targeted) lockOf(o *outcome) lock {
	if o.inPlace == nil {
		if o.record == nil || !o.read {
			return lock{}
		}
		return lock{change: o.completeRecord()}
	}
	if !o.read {
		return lock{}
	}
	staying, torn := t.stayers(o.node)
	need := drainlock.Need{Maintenance: o.inPlace.object, Staying: staying, Budgets: t.budgetsOf(staying)}
	if o.recordInForce() {
		need.Record = o.record
	}
	spec := drainlock.Needs(need)
	l := o.lockFor(need, spec, torn)
	if l.returned = drainlock.ReturnedTime(o.recordWith(spec)); !l.returned.IsZero() && o.recordInForce() {
		l.complete, l.needed, l.taken = !torn, 0, 0
	}
	if !l.complete {
		l.waiting, l.blockers = t.explainLock(o, spec, need.Budgets)
	}
	return l
}

// lockFor writes down what the pods that stay need when it is time for that.
func (o *outcome) lockFor(need drainlock.Need, spec v1alpha1.DrainRecordSpec, torn bool) lock {
	l := lock{needed: len(spec.Budgets)}
	switch {
	case o.stale():
		l.change = o.completeRecord()
	case o.recordInForce():
		l.taken = taken(o.record, spec)
		l.complete = !torn && drainlock.Holds(o.record, spec.Budgets)
		written := spec
		if need.Leaving = o.leavers(); len(need.Leaving) > 0 {
			written = drainlock.Needs(need)
		}
		l.change = o.writeDrainRecord(written)
	case o.object.Spec.Unschedulable && len(o.waited()) == 0:
		l.change = o.writeDrainRecord(spec)
	}
	return l
}

// stayers are the pods that stay on the node. Torn is true if there is another one
// under a budget, which a maintenance would leave there and another one removes: until
// it is gone the node must not go, and nothing is locked for it.
func (t *targeted) stayers(n *node) (staying []*corev1.Pod, torn bool) {
	for i := range n.pods {
		p := &n.pods[i]
		switch {
		case p.staying == nil || !slices.ContainsFunc(n.drains, func(one *selection) bool { return one.maintenance.keeps(p) }):
		case p.counted:
			torn = torn || len(t.budgets.applying(p.object)) > 0
		default:
			staying = append(staying, p.object)
		}
	}
	return staying, torn
}

// leavers are the pods that somebody waits for and that have to be evicted yet: a
// lock would keep them. One that is terminating needs no eviction any more.
func (n *node) leavers() []*corev1.Pod {
	var leaving []*corev1.Pod
	for i := range n.pods {
		if p := &n.pods[i]; p.object.DeletionTimestamp == nil && p.counted {
			leaving = append(leaving, p.object)
		}
	}
	return leaving
}

// budgetsOf are the budgets that protect some of the pods.
func (t *targeted) budgetsOf(pods []*corev1.Pod) []*policyv1.PodDisruptionBudget {
	var found []*policyv1.PodDisruptionBudget
	for _, object := range pods {
		for _, b := range t.budgets.applying(object) {
			if !slices.Contains(found, b) {
				found = append(found, b)
			}
		}
	}
	return found
}

// recordWith is the record as it is to be. What is locked for it already stays so.
func (n *node) recordWith(spec v1alpha1.DrainRecordSpec) *v1alpha1.DrainRecord {
	record := &v1alpha1.DrainRecord{}
	if n.record != nil {
		*record = *n.record
	}
	record.Name, record.Spec = n.name(), spec
	return record
}

// taken is how many of the budgets that are needed are locked for good.
func taken(record *v1alpha1.DrainRecord, spec v1alpha1.DrainRecordSpec) int {
	locked := 0
	for _, lock := range record.Status.Locks {
		locked += ones(lock.ConfirmedTime != nil && slices.Contains(spec.Budgets, lock.BudgetReference))
	}
	return locked
}

// explainLock says what the node waits for before its budgets are locked.
func (t *targeted) explainLock(o *outcome, spec v1alpha1.DrainRecordSpec, budgets []*policyv1.PodDisruptionBudget) (string, []v1alpha1.Blocker) {
	then := "."
	if len(spec.Budgets) > 0 {
		then = "; then " + status.Plural(len(spec.Budgets), "budget") + " will be locked."
	}
	switch waited := o.waited(); {
	case len(waited) > 0:
		return "Waiting for the pods that leave for " + strings.Join(waited, ", ") + then, nil
	case !o.object.Spec.Unschedulable:
		return "Waiting for the node to be cordoned" + then, nil
	case o.unclear:
		return "Waiting for a maintenance of the node whose spec is invalid" + then, nil
	case o.stale():
		return "Waiting for the DrainRecord of an earlier drain to go" + then, nil
	}
	facts := drainlock.Facts{
		Now: t.Now, Record: o.recordWith(spec), Pods: t.podsOf(o.node), Budgets: budgets, Longest: t.LongestLock,
	}
	waiting := drainlock.Waiting(facts)
	if waiting == "" {
		waiting = fmt.Sprintf("Waiting for the locks of %s.", status.Plural(len(spec.Budgets), "budget"))
	}
	return waiting, drainlock.Blockers(facts)
}

// completeRecord has the locks go when their pods are ready again. Nobody waits for
// those that have to leave now: a lock would keep the ones that never get ready.
func (n *node) completeRecord() *DrainRecordChange {
	over := n.record.Spec
	over.Complete = true
	for _, leaving := range n.leavers() {
		over.Pods = slices.DeleteFunc(slices.Clone(over.Pods), func(pod v1alpha1.StayingPod) bool { return pod.UID == leaving.UID })
	}
	return n.writeDrainRecord(over)
}

// writeDrainRecord has the record say what it does not say yet. One that is on its way
// out takes no change but that it is complete, as somebody's finalizer may hold it
// for ever, and its name is taken until it is gone. While a maintenance that is not
// understood holds the node, what it needs is unknown.
func (n *node) writeDrainRecord(spec v1alpha1.DrainRecordSpec) *DrainRecordChange {
	switch {
	case n.unclear:
	case n.record == nil:
		return &DrainRecordChange{Spec: spec}
	case (spec.Complete || n.record.DeletionTimestamp == nil) && !sameNeeds(n.record.Spec, spec):
		return &DrainRecordChange{Old: n.record, Spec: spec}
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

// recordInForce returns true if the record is that of the drain that goes on.
func (n *node) recordInForce() bool {
	return n.record != nil && !n.record.Spec.Complete && !n.stale()
}

// stale returns true if the record has to go before there is another one: it is on
// its way out, or what it has given up and waits for is no matter of this drain,
// because it is about an older node of this name or a maintenance that is over.
func (n *node) stale() bool {
	return n.record != nil && (n.record.DeletionTimestamp != nil ||
		n.object.CreationTimestamp.After(n.record.CreationTimestamp.Time) ||
		n.record.Spec.Complete && len(n.record.Status.GivenUp) > 0)
}

// waited are the names of the maintenances that wait for pods of the node.
func (n *node) waited() []string {
	var names []string
	for _, one := range n.drains {
		if one.counted() > 0 {
			names = append(names, one.maintenance.name())
		}
	}
	return names
}

// podsOf are all pods of a node, finished ones too.
func (s *seen) podsOf(n *node) []*corev1.Pod {
	all := s.Pods[n.name()]
	objects := make([]*corev1.Pod, len(all))
	for i := range all {
		objects[i] = all[i].Object
	}
	return objects
}
