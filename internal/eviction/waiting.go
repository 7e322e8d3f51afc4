package eviction

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// safety is after which time a pod that waits for its budget or its termination is tried again
// without an event.
const safety = 30 * time.Second

// state is the state of a waiting pod.
type state int

const (
	fresh            state = iota
	queued                 // waits for its turn in the queue of its budget
	trying                 // has a turn
	waitingForBudget       // was refused by its budget
	backingOff             // waits until notBefore
	waitingForLock         // waits for the end of a lock
)

// waitingPod is a pod that waits to be evicted.
type waitingPod struct {
	key   podKey
	born  time.Time
	state state
	// notBefore is the time when a pod that waits or backs off is tried again without an event.
	notBefore time.Time
	// failures counts refusals in a row that its budget did not cause.
	failures int
	// budget names its queue; empty if it is in none.
	budget types.NamespacedName
	ready  bool
	// openings counts those of the queue when the turn began.
	openings int
	// lock is the one that the refusal reports, if any.
	lock budgetLock
	// refusal is to be reported; refused is when it began, reported when it was last written.
	refusal           evacuation.Refusal
	refused, reported time.Time
}

// attempt describes a pod that is about to be evicted.
type attempt struct {
	key  podKey
	born time.Time // creation of the pod
	// budget selects the pod; empty unless exactly one does.
	budget types.NamespacedName
	ready  bool // counted as healthy by its budget
}

// begin reports whether the pod may be tried now. If not, it is tried again after wait, or woken if
// that is zero. A pod that has another budget now leaves its turn to the next pod of the old queue,
// which is returned.
func (d *Dispatcher) begin(v attempt, now time.Time) (mayTry bool, wait time.Duration, next []podKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.waitingPod(v)
	p.ready = v.ready
	if wait := p.rests(now); wait > 0 {
		return false, wait, nil
	}
	if left := p.budget; left != v.budget {
		d.refund(p)
		d.move(p, v.budget)
		next = d.release(left)
	}
	if p.budget == (types.NamespacedName{}) {
		p.state = trying
		return true, 0, next
	}
	q := d.budgetQueues[p.budget]
	if until := q.closed[p.ready]; p.state == waitingForBudget && now.Before(until) {
		// The refusal of another pod holds for this one, too.
		p.notBefore = d.spread(until)
		return false, p.rests(now), next
	}
	if p.state != trying && !q.isFree() {
		if p.state == waitingForBudget {
			// The answer to the pod that has the turn will hold for this one, too.
			p.notBefore = d.spread(now.Add(firstRefusedPause))
			return false, p.rests(now), next
		}
		p.state = queued
		return false, 0, next
	}
	if p.state != trying {
		q.take(p)
	}
	p.openings = q.openings
	return true, 0, next
}

// waitingPod returns the pod, and adds it if it is new.
func (d *Dispatcher) waitingPod(v attempt) *waitingPod {
	p := d.waiting[v.key]
	if p == nil {
		p = &waitingPod{key: v.key, born: v.born}
		d.waiting[v.key] = p
	}
	return p
}

// rests returns how long the pod is not to be tried; 0 if it may.
func (p *waitingPod) rests(now time.Time) time.Duration {
	if p.state != waitingForBudget && p.state != backingOff {
		return 0
	}
	return max(p.notBefore.Sub(now), 0)
}

// rests returns how long a pod is not to be tried; 0 if it may.
func (d *Dispatcher) rests(key podKey, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.waiting[key]; p != nil {
		return p.rests(now)
	}
	return 0
}

// isTrying reports whether a pod has the turn of its budget.
func (c *Caller) isTrying(name types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.waiting[c.key(name)]
	return p != nil && p.state == trying
}

// slow gives a turn to the next pod while a try is still under way.
func (d *Dispatcher) slow(key podKey) []podKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.waiting[key]
	if p == nil || p.state != trying {
		return nil
	}
	if q := d.budgetQueues[p.budget]; q != nil {
		q.tries[key] = true
	}
	return d.release(p.budget)
}

// finish ends a try and returns the pods that may be tried now.
func (d *Dispatcher) finish(key podKey, outcome evacuation.Outcome, now time.Time) []podKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.waiting[key]
	if p == nil {
		return nil
	}
	left := p.budget
	openings := p.openings
	if named := budgetOf(key.Namespace, outcome); named != (types.NamespacedName{}) && named != left {
		d.move(p, named)
		openings = d.budgetQueues[named].openings
	}
	d.settle(p, outcome, now)
	if q := d.budgetQueues[p.budget]; q != nil {
		q.account(p, outcome, openings)
	}
	return append(d.release(left), d.releaseOther(left, p.budget)...)
}

// yield takes back an unused turn and returns the pods that may be tried now.
func (d *Dispatcher) yield(key podKey, now time.Time) []podKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.waiting[key]
	if p == nil || p.state != trying {
		return nil
	}
	d.refund(p)
	d.rest(p, now.Add(time.Second))
	return d.release(p.budget)
}

// forget removes a pod and returns the pods that may be tried now.
func (d *Dispatcher) forget(key podKey) []podKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.waiting[key]
	if p == nil {
		return nil
	}
	left := p.budget
	d.refund(p)
	d.move(p, types.NamespacedName{})
	delete(d.waiting, key)
	return d.release(left)
}

// wait returns how long a pod has to wait; 0 if it is woken or does not wait.
func (d *Dispatcher) wait(key podKey, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.waiting[key]
	if p == nil || p.state != waitingForBudget && p.state != backingOff {
		return 0
	}
	return max(p.notBefore.Sub(now), time.Nanosecond)
}

// budgetAllows notes how many disruptions a budget allows and returns the pods that may be tried.
func (d *Dispatcher) budgetAllows(budget types.NamespacedName, allowed int32) []podKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.budgetQueues[budget]
	if q == nil {
		return nil
	}
	q.credit = allowed
	if allowed > 0 {
		q.open()
	}
	return d.release(budget)
}

// budgetReplaced notes that a budget is gone or selects other pods, and returns the pods to try
// again, the oldest first: its own, and those with several budgets, as it may have been one of them.
func (d *Dispatcher) budgetReplaced(budget types.NamespacedName) []podKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.budgetQueues[budget]
	if q != nil {
		q.credit = unknown
		q.open()
	}
	var waiting []*waitingPod
	for _, p := range d.waiting {
		inQueue := q != nil && p.budget == budget && (p.state == waitingForBudget || p.state == queued)
		if inQueue || p.hasSeveral(budget.Namespace) {
			p.state, p.failures = fresh, 0
			waiting = append(waiting, p)
		}
	}
	return oldestFirst(waiting)
}

// settle notes the result of a try.
func (d *Dispatcher) settle(p *waitingPod, outcome evacuation.Outcome, now time.Time) {
	switch outcome.Result {
	case evacuation.Evicted, evacuation.Gone:
		p.failures = 0
		p.refusal = evacuation.Refusal{}
		d.rest(p, now.Add(safety))
		return
	case evacuation.Budgeted:
		p.failures = 0
		d.rest(p, d.spread(now.Add(min(cmp.Or(outcome.RetryAfter, safety), safety))))
		if p.budget != (types.NamespacedName{}) {
			p.state = waitingForBudget
		}
	default:
		p.failures++
		d.rest(p, now.Add(pause(outcome, p.failures, d.options.Jitter())))
	}
	p.note(outcome, now)
}

// refund gives back the credit of an unused turn.
func (d *Dispatcher) refund(p *waitingPod) {
	if q := d.budgetQueues[p.budget]; q != nil && p.state == trying {
		q.refund()
	}
}

// spread delays a time at random, so that pods do not continue at the same moment.
func (d *Dispatcher) spread(at time.Time) time.Time {
	return at.Add(time.Duration(d.options.Jitter() * float64(safety) / 4))
}

// rest ends a turn and makes the pod back off.
func (d *Dispatcher) rest(p *waitingPod, until time.Time) {
	p.state, p.notBefore = backingOff, until
	if q := d.budgetQueues[p.budget]; q != nil {
		delete(q.tries, p.key)
	}
}

// move puts a pod into the queue of another budget; none if that is empty.
func (d *Dispatcher) move(p *waitingPod, budget types.NamespacedName) {
	if q := d.budgetQueues[p.budget]; q != nil {
		delete(q.tries, p.key)
		delete(q.waiting, p.key)
		if len(q.waiting) == 0 {
			delete(d.budgetQueues, p.budget)
		}
	}
	p.budget, p.state = budget, fresh
	if budget == (types.NamespacedName{}) {
		return
	}
	q := d.budgetQueues[budget]
	if q == nil {
		q = newBudgetQueue()
		d.budgetQueues[budget] = q
	}
	q.waiting[p.key] = p
}

func (d *Dispatcher) releaseOther(left, budget types.NamespacedName) []podKey {
	if left == budget {
		return nil
	}
	return d.release(budget)
}

// release gives the turn, if it is free, to the oldest pod that may be tried.
func (d *Dispatcher) release(budget types.NamespacedName) []podKey {
	q := d.budgetQueues[budget]
	if q == nil || !q.isFree() {
		return nil
	}
	next := q.oldest()
	if next == nil {
		return nil
	}
	q.take(next)
	return []podKey{next.key}
}

// hasSeveral reports whether the pod backs off because several budgets select it.
func (p *waitingPod) hasSeveral(namespace string) bool {
	return p.state == backingOff && p.key.Namespace == namespace && p.refusal.Type == v1alpha1.BlockerMultiplePDBs
}

// compare orders pods by age, the oldest first.
func (p *waitingPod) compare(other *waitingPod) int {
	return cmp.Or(p.born.Compare(other.born), strings.Compare(p.key.String(), other.key.String()))
}

func budgetOf(namespace string, outcome evacuation.Outcome) types.NamespacedName {
	if outcome.Budget == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: outcome.Budget}
}
