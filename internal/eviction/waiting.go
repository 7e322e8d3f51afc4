package eviction

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// safety is the time for which a pod waits for its budget or for its termination before it
// is tried again without any sign.
const safety = 30 * time.Second

// state is what a pod is waiting for.
type state int

const (
	// fresh: for nothing.
	fresh state = iota
	// queued: for its turn in the queue of its budget.
	queued
	// trying: it has a turn.
	trying
	// waitingForBudget: for its budget to open.
	waitingForBudget
	// backingOff: for some time to pass.
	backingOff
	// waitingForLock: for the end of a lock.
	waitingForLock
)

// waitingPod is one pod.
type waitingPod struct {
	key   podKey
	born  time.Time
	state state
	// notBefore is the time at which a pod that waits or backs off is tried again anyway.
	notBefore time.Time
	// failures is how often in a row it was refused for other reasons than its budget.
	failures int
	// budget is the queue that it belongs to; empty if it needs none.
	budget types.NamespacedName
	ready  bool
	// openings are those of the queue when the turn began.
	openings int
	// told is the lock that the refusal tells of, if it reports one.
	told budgetLock
	// refusal is what has to be reported, since when, and when it last was.
	refusal           evacuation.Refusal
	refused, reported time.Time
}

// attempt is what a pod asks with whether it may be evicted.
type attempt struct {
	key podKey
	// born is the time at which the pod was created.
	born time.Time
	// budget is the one that protects the pod; empty if there is none, or not
	// exactly one.
	budget types.NamespacedName
	// ready is true of a pod that its budget counts as healthy.
	ready bool
}

// begin reports whether the pod may try now. If it may not and wait is not
// zero, it should ask again then; otherwise it is woken. A pod that has
// another budget now leaves its turn to the next one of the old queue, which is
// returned.
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
		// Another pod was refused meanwhile, for this one, too.
		p.notBefore = d.spread(until)
		return false, p.rests(now), next
	}
	if p.state != trying && !q.hasTurn() {
		if p.state == waitingForBudget {
			// Whoever has the turn asks for this one, too.
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

// waitingPod finds the pod, which may be new.
func (d *Dispatcher) waitingPod(v attempt) *waitingPod {
	p := d.waiting[v.key]
	if p == nil {
		p = &waitingPod{key: v.key, born: v.born}
		d.waiting[v.key] = p
	}
	return p
}

// rests returns for how long the pod need not even look; 0 if it may.
func (p *waitingPod) rests(now time.Time) time.Duration {
	if p.state != waitingForBudget && p.state != backingOff {
		return 0
	}
	return max(p.notBefore.Sub(now), 0)
}

// rests returns for how long the pod need not even look; 0 if it may.
func (d *Dispatcher) rests(key podKey, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.waiting[key]; p != nil {
		return p.rests(now)
	}
	return 0
}

// hasTurn reports whether a pod has its turn, for which others of its budget wait.
func (c *Caller) hasTurn(name types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.waiting[c.key(name)]
	return p != nil && p.state == trying
}

// slow lets the next one try while a try is still under way.
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

// finish ends a try and returns who may try now.
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

// yield takes back a turn that was not used, for instance because a read
// failed, and returns who may try now.
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

// forget removes a pod that nobody waits to evict any more and returns who may
// try now.
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

// wait returns how long a pod that may not try now has to wait; 0 if it is
// woken or does not wait.
func (d *Dispatcher) wait(key podKey, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.waiting[key]
	if p == nil || p.state != waitingForBudget && p.state != backingOff {
		return 0
	}
	return max(p.notBefore.Sub(now), time.Nanosecond)
}

// budgetAllows is told how many disruptions a budget allows and returns who may try.
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

// budgetReplaced learns of a budget that is gone or selects other pods, so that nothing
// is known of its pods any more. Neither is of pods that had too many budgets:
// it may have been one of these. It returns all that should ask again, the
// oldest first.
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

// settle notes what became of a try.
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

// refund gives back the credit of a turn that was not used.
func (d *Dispatcher) refund(p *waitingPod) {
	if q := d.budgetQueues[p.budget]; q != nil && p.state == trying {
		q.refund()
	}
}

// spread keeps what has begun at the same time from going on at the same time.
func (d *Dispatcher) spread(at time.Time) time.Time {
	return at.Add(time.Duration(d.options.Jitter() * float64(safety) / 4))
}

// rest takes the turn away until the time has come.
func (d *Dispatcher) rest(p *waitingPod, until time.Time) {
	p.state, p.notBefore = backingOff, until
	if q := d.budgetQueues[p.budget]; q != nil {
		delete(q.tries, p.key)
	}
}

// move puts a pod into the queue of another budget.
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

// release gives the turn to the oldest who may have it, if it is free.
func (d *Dispatcher) release(budget types.NamespacedName) []podKey {
	q := d.budgetQueues[budget]
	if q == nil || !q.hasTurn() {
		return nil
	}
	next := q.oldest()
	if next == nil {
		return nil
	}
	q.take(next)
	return []podKey{next.key}
}

// hasSeveral reports whether the pod waits in the namespace because it has more
// than one budget.
func (p *waitingPod) hasSeveral(namespace string) bool {
	return p.state == backingOff && p.key.Namespace == namespace && p.refusal.Type == v1alpha1.BlockerMultiplePDBs
}

// compare puts the oldest pod first.
func (p *waitingPod) compare(other *waitingPod) int {
	return cmp.Or(p.born.Compare(other.born), strings.Compare(p.key.String(), other.key.String()))
}

func budgetOf(namespace string, outcome evacuation.Outcome) types.NamespacedName {
	if outcome.Budget == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: outcome.Budget}
}
