package evacuation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	core "ebbtide.dev/ebbtide/internal/core/evacuation"
)

const (
	// safety is how long an evacuation waits for its budget or for its pod to
	// terminate before it is tried again without any sign.
	safety = 30 * time.Second
	// maxTurns is how many pods of one budget are evicted at the same time. The
	// API server settles a race for a budget by making the losers wait for half
	// a second, so that a few at a time are faster than all at once.
	maxTurns = 2
)

// room holds the evacuations that wait to evict, and says who may try.
//
// Pods of one budget form a line: the oldest goes first, and whoever comes back
// with success lets the next one try. A refusal closes the line until the
// watched budget allows a disruption again; a budget that moved while the
// refusal was under way keeps it open, so that no sign is ever lost. All of it
// is in memory: after a restart everything is simply tried again.
type room struct {
	mu     sync.Mutex
	jitter func() float64
	guests map[types.NamespacedName]*guest
	lines  map[types.NamespacedName]*line
}

// line is the pods of one budget.
type line struct {
	// open is true if there is no sign that the budget allows nothing.
	open bool
	// openings counts the signs that it allows something.
	openings int
	guests   map[types.NamespacedName]*guest
	turns    map[types.NamespacedName]bool
}

// standing is what a guest is waiting for.
type standing int

const (
	// arriving: for nothing.
	arriving standing = iota
	// queued: for one of the turns of its budget.
	queued
	// trying: it has a turn.
	trying
	// parked: for its budget to open.
	parked
	// resting: for some time to pass.
	resting
)

// guest is one evacuation.
type guest struct {
	key      types.NamespacedName
	born     time.Time
	standing standing
	// notBefore is when a parked or resting guest is tried again anyway.
	notBefore time.Time
	// failures is how often in a row it was refused for other reasons than its budget.
	failures int
	// budget is the line that it belongs to; empty if it needs none.
	budget types.NamespacedName
	// openings are those of the line when the turn began.
	openings int
	// refusal is what has to be reported, since when, and when it last was.
	refusal           core.Refusal
	refused, reported time.Time
}

func newRoom(jitter func() float64) *room {
	return &room{
		jitter: jitter,
		guests: map[types.NamespacedName]*guest{},
		lines:  map[types.NamespacedName]*line{},
	}
}

// visit is who asks to evict.
type visit struct {
	key types.NamespacedName
	// born is when the pod was created.
	born time.Time
	// budget is the one that protects the pod; empty if there is none, or not
	// exactly one.
	budget types.NamespacedName
}

// enter reports whether the visitor may try now. If it may not and wait is not
// zero, it should ask again then; otherwise it is woken.
func (r *room) enter(v visit, now time.Time) (mayTry bool, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[v.key]
	if g == nil {
		g = &guest{key: v.key, born: v.born}
		r.guests[v.key] = g
	}
	if (g.standing == parked || g.standing == resting) && now.Before(g.notBefore) {
		return false, g.notBefore.Sub(now)
	}
	if g.budget != v.budget {
		r.move(g, v.budget)
	}
	if g.budget == (types.NamespacedName{}) {
		g.standing = trying
		return true, 0
	}
	l := r.lines[g.budget]
	if g.standing != trying && len(l.turns) >= maxTurns {
		g.standing = queued
		return false, 0
	}
	l.take(g)
	return true, 0
}

// leave ends a try and returns who may try now.
func (r *room) leave(key types.NamespacedName, outcome core.Outcome, now time.Time) []types.NamespacedName {
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
	if l := r.lines[g.budget]; l != nil && g.standing == parked {
		l.open = l.openings != openings
	}
	return append(r.release(left), r.releaseOther(left, g.budget)...)
}

// yield takes back a turn that was not used, for instance because a read
// failed, and returns who may try now.
func (r *room) yield(key types.NamespacedName, now time.Time) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	if g == nil || g.standing != trying {
		return nil
	}
	r.rest(g, now.Add(time.Second))
	return r.release(g.budget)
}

// forget removes an evacuation that does not wait to evict any more and returns
// who may try now.
func (r *room) forget(key types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	if g == nil {
		return nil
	}
	left := g.budget
	r.move(g, types.NamespacedName{})
	delete(r.guests, key)
	return r.release(left)
}

// wait returns how long a guest that may not try now has to wait; 0 if it is
// woken or does not wait.
func (r *room) wait(key types.NamespacedName, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	if g == nil || g.standing != parked && g.standing != resting {
		return 0
	}
	return max(g.notBefore.Sub(now), time.Nanosecond)
}

// opened is told of a budget that allows disruptions and returns who may try.
func (r *room) opened(budget types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[budget]
	if l == nil {
		return nil
	}
	l.open = true
	l.openings++
	return r.release(budget)
}

// scatter is told of a budget that is gone or has another spec, so that nothing
// is known of its pods any more. It returns all that should ask again.
func (r *room) scatter(budget types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[budget]
	if l == nil {
		return nil
	}
	l.open = true
	l.openings++
	var woken []types.NamespacedName
	for key, g := range l.guests {
		if g.standing == parked || g.standing == queued {
			g.standing = arriving
			woken = append(woken, key)
		}
	}
	return woken
}

// settle notes what became of a try.
func (r *room) settle(g *guest, outcome core.Outcome, now time.Time) {
	switch outcome.Result {
	case core.Evicted, core.Gone:
		g.failures = 0
		r.rest(g, now.Add(safety))
		return
	case core.Budgeted:
		g.failures = 0
		r.rest(g, now.Add(safety))
		if g.budget != (types.NamespacedName{}) {
			g.standing = parked
		}
	default:
		g.failures++
		r.rest(g, now.Add(pause(outcome, g.failures, r.jitter())))
	}
	g.note(outcome, now)
}

// rest takes the turn away until the time has come.
func (r *room) rest(g *guest, until time.Time) {
	g.standing, g.notBefore = resting, until
	if l := r.lines[g.budget]; l != nil {
		delete(l.turns, g.key)
	}
}

// move puts a guest into the line of another budget.
func (r *room) move(g *guest, budget types.NamespacedName) {
	if l := r.lines[g.budget]; l != nil {
		delete(l.turns, g.key)
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
		l = &line{open: true, guests: map[types.NamespacedName]*guest{}, turns: map[types.NamespacedName]bool{}}
		r.lines[budget] = l
	}
	l.guests[g.key] = g
}

func (r *room) releaseOther(left, budget types.NamespacedName) []types.NamespacedName {
	if left == budget {
		return nil
	}
	return r.release(budget)
}

// release hands out the free turns of a budget, to the oldest first. A closed
// line lets only those try who have not been refused yet.
func (r *room) release(budget types.NamespacedName) []types.NamespacedName {
	l := r.lines[budget]
	if l == nil {
		return nil
	}
	var woken []types.NamespacedName
	for len(l.turns) < maxTurns {
		g := l.oldest()
		if g == nil {
			break
		}
		l.take(g)
		woken = append(woken, g.key)
	}
	return woken
}

func (l *line) take(g *guest) {
	l.turns[g.key] = true
	g.standing = trying
	g.openings = l.openings
}

// oldest is the next one to try; nil if nobody may.
func (l *line) oldest() *guest {
	var first *guest
	for _, g := range l.guests {
		if g.standing == queued || (g.standing == parked && l.open) {
			if first == nil || g.before(first) {
				first = g
			}
		}
	}
	return first
}

func (g *guest) before(other *guest) bool {
	if !g.born.Equal(other.born) {
		return g.born.Before(other.born)
	}
	return g.key.String() < other.key.String()
}

func budgetOf(namespace string, outcome core.Outcome) types.NamespacedName {
	if outcome.Budget == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: outcome.Budget}
}
