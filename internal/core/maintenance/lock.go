package maintenance

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

// lock is what becomes of the DrainRecord of a site in place, and how far its
// locks are.
type lock struct {
	change *RecordChange
	// held is true if every budget that is needed is locked, or none is.
	held bool
	// needed and taken are how many budgets are to be locked and are.
	needed, taken int
	// waiting says what the site waits for while a lock is missing, blockers who is
	// in the way.
	waiting  string
	blockers []v1alpha1.Blocker
}

// decideLock decides about the DrainRecord of a site. It is written when nothing
// but pods that stay is left, so that a node that still waits for others holds
// nobody up; from then on it is kept up to date until the last intent in place is
// over.
func (p *pass) decideLock(s *site) {
	owner := s.inPlace()
	if owner == nil {
		p.endLock(s)
		return
	}
	staying, torn := p.stayers(s)
	if !s.known || len(staying) == 0 && !torn && s.record == nil {
		s.lock.held = s.known
		return
	}
	need := p.need(s, owner, staying)
	spec := drainlock.Needs(need)
	s.lock.needed = len(spec.Budgets)
	s.lock.held = s.lock.needed == 0 && !torn
	switch {
	case s.stale():
		s.completeRecord()
	case s.recordInForce():
		s.lock.taken = taken(s.record, spec)
		s.lock.held = s.lock.held || !torn && drainlock.Holds(s.record, spec.Budgets)
		if need.Leaving = s.leavers(); len(need.Leaving) > 0 {
			s.writeRecord(drainlock.Needs(need))
		} else {
			s.writeRecord(spec)
		}
	case s.lock.needed > 0 && s.readyToLock():
		s.writeRecord(spec)
	}
	if !s.lock.held {
		p.explainLock(s, spec, need.Budgets)
	}
}

// stayers are the pods that stay on the site. Torn is true if there is another one
// under a budget, which an intent would leave there and somebody else removes: until
// it is gone the node must not go, and nothing is locked for it.
func (p *pass) stayers(s *site) (staying []*corev1.Pod, torn bool) {
	for n := range s.pods {
		pod := &s.pods[n]
		switch {
		case !s.kept(pod):
		case s.wanted(pod):
			torn = torn || len(p.applying(pod.pod)) > 0
		default:
			staying = append(staying, pod.pod)
		}
	}
	return staying, torn
}

// leavers are the pods that somebody waits for and that have to be evicted yet: a
// lock would keep them. One that is terminating needs no eviction any more.
func (s *site) leavers() []*corev1.Pod {
	var leaving []*corev1.Pod
	for n := range s.pods {
		if pod := &s.pods[n]; pod.pod.DeletionTimestamp == nil && s.wanted(pod) {
			leaving = append(leaving, pod.pod)
		}
	}
	return leaving
}

// need is what the pods that stay need when nobody else has to leave any more.
func (p *pass) need(s *site, owner *intent, staying []*corev1.Pod) drainlock.Need {
	need := drainlock.Need{Maintenance: owner.object, Staying: staying, Budgets: p.budgetsOf(staying)}
	if s.recordInForce() {
		need.Record = s.record
	}
	return need
}

// budgetsOf are the budgets that protect some of the pods.
func (p *pass) budgetsOf(pods []*corev1.Pod) []*policyv1.PodDisruptionBudget {
	var budgets []*policyv1.PodDisruptionBudget
	for _, pod := range pods {
		for _, b := range p.applying(pod) {
			if !slices.Contains(budgets, b) {
				budgets = append(budgets, b)
			}
		}
	}
	return budgets
}

// applying are the budgets that protect a pod.
func (p *pass) applying(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	return p.budgetsIn(pod.Namespace).Applying(pod)
}

// budgetsIn are those of a namespace, compiled once.
func (p *pass) budgetsIn(namespace string) budget.Compiled {
	compiled, found := p.budgets[namespace]
	if !found {
		compiled = budget.Compile(p.snapshot.Budgets[namespace])
		p.budgets[namespace] = compiled
	}
	return compiled
}

// with is the record as it is to be. What is locked for it already stays so.
func (s *site) with(spec v1alpha1.DrainRecordSpec) *v1alpha1.DrainRecord {
	record := &v1alpha1.DrainRecord{}
	if s.record != nil {
		*record = *s.record
	}
	record.Name, record.Spec = s.node.Name, spec
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

// explainLock says what the site waits for before its budgets are locked.
func (p *pass) explainLock(s *site, spec v1alpha1.DrainRecordSpec, budgets []*policyv1.PodDisruptionBudget) {
	then := "."
	if len(spec.Budgets) > 0 {
		then = "; then " + count(len(spec.Budgets), "budget") + " will be locked."
	}
	switch waited := s.waited(); {
	case len(waited) > 0:
		s.lock.waiting = "Waiting for the pods that leave for " + strings.Join(intentNames(waited), ", ") + then
	case !s.node.Spec.Unschedulable:
		s.lock.waiting = "Waiting for the node to be cordoned" + then
	case s.frozen:
		s.lock.waiting = "Waiting for a maintenance of the node whose spec is invalid" + then
	case s.stale():
		s.lock.waiting = "Waiting for the DrainRecord of an earlier drain to go" + then
	default:
		facts := drainlock.Facts{
			Now: p.snapshot.Now, Record: s.with(spec), Pods: p.snapshot.Pods[s.node.Name], Budgets: budgets, Longest: p.snapshot.LongestLock,
		}
		s.lock.waiting, s.lock.blockers = drainlock.Waiting(facts), drainlock.Blockers(facts)
		if s.lock.waiting == "" {
			s.lock.waiting = fmt.Sprintf("Waiting for the locks of %s.", count(len(spec.Budgets), "budget"))
		}
	}
}

func intentNames(shares []*share) []string {
	names := make([]string, 0, len(shares))
	for _, one := range shares {
		names = append(names, one.intent.name())
	}
	return names
}

// endLock has the locks given back that no intent needs any more.
func (p *pass) endLock(s *site) {
	if s.record != nil && s.podsRead(p.snapshot) {
		s.completeRecord()
	}
}

// completeRecord has the locks go when their pods are ready again. Nobody waits for
// those that have to leave now: a lock would keep the ones that never get ready.
func (s *site) completeRecord() {
	over := s.record.Spec
	over.Complete = true
	for _, leaving := range s.leavers() {
		over.Pods = slices.DeleteFunc(slices.Clone(over.Pods), func(pod v1alpha1.StayingPod) bool { return pod.UID == leaving.UID })
	}
	s.writeRecord(over)
}

// writeRecord has the record say what it does not say yet. One that is on its way
// out takes no change but that it is complete, as somebody's finalizer may hold it
// for ever, and its name is taken until it is gone. While an intent that
// cannot be understood holds the site, what it needs is unknown.
func (s *site) writeRecord(spec v1alpha1.DrainRecordSpec) {
	switch {
	case s.frozen:
	case s.record == nil:
		s.lock.change = &RecordChange{Spec: spec}
	case (spec.Complete || s.record.DeletionTimestamp == nil) && !sameNeeds(s.record.Spec, spec):
		s.lock.change = &RecordChange{Old: s.record, Spec: spec}
	}
}

// sameNeeds is equality, faster where it matters: a pass compares the pods of every
// node that is away.
func sameNeeds(a, b v1alpha1.DrainRecordSpec) bool {
	if !slices.EqualFunc(a.Pods, b.Pods, samePod) || !slices.Equal(a.Budgets, b.Budgets) {
		return false
	}
	a.Pods, b.Pods, a.Budgets, b.Budgets = nil, nil, nil, nil
	return equality.Semantic.DeepEqual(a, b)
}

func samePod(a, b v1alpha1.StayingPod) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Namespace == b.Namespace && slices.Equal(a.BudgetNames, b.BudgetNames)
}

// recordInForce returns true if the record is that of the drain that goes on.
func (s *site) recordInForce() bool {
	return s.record != nil && !s.record.Spec.Complete && !s.stale()
}

// stale returns true if the record has to go before there is another one: it is on
// its way out, or what it has given up and waits for is no matter of this drain,
// because it is about an older node of this name or a maintenance that is over.
func (s *site) stale() bool {
	return s.record != nil && (s.record.DeletionTimestamp != nil ||
		s.node.CreationTimestamp.After(s.record.CreationTimestamp.Time) ||
		s.record.Spec.Complete && len(s.record.Status.GivenUp) > 0)
}

// readyToLock returns true if no pod is left on the cordoned site that anybody
// waits for.
func (s *site) readyToLock() bool {
	return s.node.Spec.Unschedulable && len(s.waited()) == 0
}

// waited are the shares with pods left.
func (s *site) waited() []*share {
	return slices.DeleteFunc(slices.Clone(s.drains), func(one *share) bool { return one.counted() == 0 })
}
