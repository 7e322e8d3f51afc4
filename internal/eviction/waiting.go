package eviction

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// safety is how long a pod waits for its budget or for its termination before it
// is tried again without any sign.
const safety = 30 * time.Second

// standing is what a guest is waiting for.
type standing int

const (
	// arriving: for nothing.
	arriving standing = iota
	// queued: for its turn in the line of its budget.
	queued
	// trying: it has a turn.
	trying
	// parked: for its budget to open.
	parked
	// resting: for some time to pass.
	resting
	// barred: for the end of a lock.
	barred
)

// guest is one pod.
type guest struct {
	key      types.NamespacedName
	born     time.Time
	standing standing
	// notBefore is when a parked, resting or barred guest is tried again anyway.
	notBefore time.Time
	// failures is how often in a row it was refused for other reasons than its budget.
	failures int
	// budget is the line that it belongs to; empty if it needs none.
	budget types.NamespacedName
	ready  bool
	// openings are those of the line when the turn began.
	openings int
	// told is the lock that the refusal tells of, if it tells of one.
	told barrier
	// refusal is what has to be reported, since when, and when it last was.
	refusal           evacuation.Refusal
	refused, reported time.Time
}

// visit is who asks to evict.
type visit struct {
	key types.NamespacedName
	// born is when the pod was created.
	born time.Time
	// budget is the one that protects the pod; empty if there is none, or not
	// exactly one.
	budget types.NamespacedName
	// ready is true of a pod that its budget counts as healthy.
	ready bool
}

// enter reports whether the visitor may try now. If it may not and wait is not
// zero, it should ask again then; otherwise it is woken. A visitor that has
// another budget now leaves its turn to the next one of the old line, which is
// returned.
func (r *Room) enter(v visit, now time.Time) (mayTry bool, wait time.Duration, next []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guest(v)
	g.ready = v.ready
	if wait := g.rests(now); wait > 0 {
		return false, wait, nil
	}
	if left := g.budget; left != v.budget {
		r.refund(g)
		r.move(g, v.budget)
		next = r.release(left)
	}
	if g.budget == (types.NamespacedName{}) {
		g.standing = trying
		return true, 0, next
	}
	l := r.lines[g.budget]
	if until := l.closed[g.ready]; g.standing == parked && now.Before(until) {
		// Another pod was refused meanwhile, for this one, too.
		g.notBefore = r.spread(until)
		return false, g.rests(now), next
	}
	if g.standing != trying && !l.hasTurn() {
		if g.standing == parked {
			// Whoever has the turn asks for this one, too.
			g.notBefore = r.spread(now.Add(firstRefusedPause))
			return false, g.rests(now), next
		}
		g.standing = queued
		return false, 0, next
	}
	if g.standing != trying {
		l.take(g)
	}
	g.openings = l.openings
	return true, 0, next
}

// guest finds the visitor, who may be new.
func (r *Room) guest(v visit) *guest {
	g := r.guests[v.key]
	if g == nil {
		g = &guest{key: v.key, born: v.born}
		r.guests[v.key] = g
	}
	return g
}

// rests returns for how long the guest need not even look; 0 if it may.
func (g *guest) rests(now time.Time) time.Duration {
	if g.standing != parked && g.standing != resting {
		return 0
	}
	return max(g.notBefore.Sub(now), 0)
}

// rests returns for how long the pod need not even look; 0 if it may.
func (r *Room) rests(key types.NamespacedName, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.guests[key]; g != nil {
		return g.rests(now)
	}
	return 0
}

// hasTurn reports whether a pod has its turn, for which others of its budget wait.
func (r *Room) hasTurn(key types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	return g != nil && g.standing == trying
}

// slow lets the next one try while a try is still under way.
func (r *Room) slow(key types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	if g == nil || g.standing != trying {
		return nil
	}
	if l := r.lines[g.budget]; l != nil {
		l.tries[key] = true
	}
	return r.release(g.budget)
}

// leave ends a try and returns who may try now.
func (r *Room) leave(key types.NamespacedName, outcome evacuation.Outcome, now time.Time) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	if g == nil {
		return nil
	}
	left := g.budget
	openings := g.openings
	if named := budgetOf(key.Namespace, outcome); named != (types.NamespacedName{}) && named != left {
		r.move(g, named)
		openings = r.lines[named].openings
	}
	r.settle(g, outcome, now)
	if l := r.lines[g.budget]; l != nil {
		l.account(g, outcome, openings)
	}
	return append(r.release(left), r.releaseOther(left, g.budget)...)
}

// yield takes back a turn that was not used, for instance because a read
// failed, and returns who may try now.
func (r *Room) yield(key types.NamespacedName, now time.Time) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	if g == nil || g.standing != trying {
		return nil
	}
	r.refund(g)
	r.rest(g, now.Add(time.Second))
	return r.release(g.budget)
}

// forget removes a pod that nobody waits to evict any more and returns who may
// try now.
func (r *Room) forget(key types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	if g == nil {
		return nil
	}
	left := g.budget
	r.refund(g)
	r.move(g, types.NamespacedName{})
	delete(r.guests, key)
	return r.release(left)
}

// wait returns how long a guest that may not try now has to wait; 0 if it is
// woken or does not wait.
func (r *Room) wait(key types.NamespacedName, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	if g == nil || g.standing != parked && g.standing != resting {
		return 0
	}
	return max(g.notBefore.Sub(now), time.Nanosecond)
}

// moved is told how many disruptions a budget allows and returns who may try.
func (r *Room) moved(budget types.NamespacedName, allowed int32) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[budget]
	if l == nil {
		return nil
	}
	l.credit = allowed
	if allowed > 0 {
		l.open()
	}
	return r.release(budget)
}

// scatter is told of a budget that is gone or selects other pods, so that nothing
// is known of its pods any more. Neither is of pods that had too many budgets:
// it may have been one of these. It returns all that should ask again, the
// oldest first.
func (r *Room) scatter(budget types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[budget]
	if l != nil {
		l.credit = unknown
		l.open()
	}
	var waiting []*guest
	for _, g := range r.guests {
		inLine := l != nil && g.budget == budget && (g.standing == parked || g.standing == queued)
		if inLine || g.hasSeveral(budget.Namespace) {
			g.standing, g.failures = arriving, 0
			waiting = append(waiting, g)
		}
	}
	return oldestFirst(waiting)
}

// settle notes what became of a try.
func (r *Room) settle(g *guest, outcome evacuation.Outcome, now time.Time) {
	switch outcome.Result {
	case evacuation.Evicted, evacuation.Gone:
		g.failures = 0
		g.refusal = evacuation.Refusal{}
		r.rest(g, now.Add(safety))
		return
	case evacuation.Budgeted:
		g.failures = 0
		r.rest(g, r.spread(now.Add(min(cmp.Or(outcome.RetryAfter, safety), safety))))
		if g.budget != (types.NamespacedName{}) {
			g.standing = parked
		}
	default:
		g.failures++
		r.rest(g, now.Add(pause(outcome, g.failures, r.options.Jitter(), r.options.LongestPause)))
	}
	g.note(outcome, now)
}

// refund gives back the credit of a turn that was not used.
func (r *Room) refund(g *guest) {
	if l := r.lines[g.budget]; l != nil && g.standing == trying {
		l.refund()
	}
}

// spread keeps what has begun at the same time from going on at the same time.
func (r *Room) spread(at time.Time) time.Time {
	return at.Add(time.Duration(r.options.Jitter() * float64(safety) / 4))
}

// rest takes the turn away until the time has come.
func (r *Room) rest(g *guest, until time.Time) {
	g.standing, g.notBefore = resting, until
	if l := r.lines[g.budget]; l != nil {
		delete(l.tries, g.key)
	}
}

// move puts a guest into the line of another budget.
func (r *Room) move(g *guest, budget types.NamespacedName) {
	if l := r.lines[g.budget]; l != nil {
		delete(l.tries, g.key)
		delete(l.guests, g.key)
		if len(l.guests) == 0 {
			delete(r.lines, g.budget)
		}
	}
	g.budget, g.standing = budget, arriving
	if budget == (types.NamespacedName{}) {
		return
	}
	l := r.lines[budget]
	if l == nil {
		l = newLine()
		r.lines[budget] = l
	}
	l.guests[g.key] = g
}

func (r *Room) releaseOther(left, budget types.NamespacedName) []types.NamespacedName {
	if left == budget {
		return nil
	}
	return r.release(budget)
}

// release gives the turn to the oldest who may have it, if it is free.
func (r *Room) release(budget types.NamespacedName) []types.NamespacedName {
	l := r.lines[budget]
	if l == nil || !l.hasTurn() {
		return nil
	}
	next := l.oldest()
	if next == nil {
		return nil
	}
	l.take(next)
	return []types.NamespacedName{next.key}
}

// hasSeveral reports whether the pod waits in the namespace because it has more
// than one budget.
func (g *guest) hasSeveral(namespace string) bool {
	return g.standing == resting && g.key.Namespace == namespace && g.refusal.Type == v1alpha1.BlockerMultiplePDBs
}

// compare puts the oldest pod first.
func (g *guest) compare(other *guest) int {
	return cmp.Or(g.born.Compare(other.born), strings.Compare(g.key.String(), other.key.String()))
}

func budgetOf(namespace string, outcome evacuation.Outcome) types.NamespacedName {
	if outcome.Budget == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: outcome.Budget}
}
