package eviction

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

const (
	// slowTry is how long a try keeps the next pod of its budget from trying. The
	// API server settles a race for a budget by making the losers wait for half a
	// second, so that one after the other is much faster than all at once; but
	// nobody waits for one that has lost such a race to somebody else.
	slowTry = 50 * time.Millisecond
	// maxTries is how many tries for one budget may be under way, slow ones and all.
	maxTries = 8
	// unknown is the credit of a budget of which nothing is known.
	unknown = math.MaxInt32
)

// line is the pods of one budget.
type line struct {
	// credit is how many of those who were refused may try again.
	credit int32
	// openings counts how often the budget was seen to allow something.
	openings int
	guests   map[types.NamespacedName]*guest
	// tries are the guests that are trying, with true if they are slow.
	tries map[types.NamespacedName]bool
	// closed is until when nobody need ask again who was refused, of the pods that
	// are ready and of those that are not: for each of the two the budget has one
	// answer, and one pod asks for all.
	closed map[bool]time.Time
}

func newLine() *line {
	return &line{
		credit: unknown,
		guests: map[types.NamespacedName]*guest{},
		tries:  map[types.NamespacedName]bool{},
		closed: map[bool]time.Time{},
	}
}

// hasTurn reports whether somebody may begin to try.
func (l *line) hasTurn() bool {
	for _, slow := range l.tries {
		if !slow {
			return false
		}
	}
	return len(l.tries) < maxTries
}

func (l *line) take(g *guest) {
	l.tries[g.key] = false
	l.credit = max(l.credit-1, 0)
	g.standing = trying
}

// account corrects what is known of the budget by what became of a try. A refusal
// that is older than the last opening says nothing about it.
func (l *line) account(g *guest, outcome evacuation.Outcome, openings int) {
	switch outcome.Result {
	case evacuation.Evicted:
	case evacuation.Budgeted:
		if l.openings == openings {
			l.close(g)
		}
	default:
		l.refund()
	}
}

// close notes that a budget has refused. One that keeps a pod that is not ready
// keeps the ready ones, too; not so the other way round.
func (l *line) close(g *guest) {
	l.credit = 0
	l.closed[true] = g.notBefore
	if !g.ready {
		l.closed[false] = g.notBefore
	}
}

// open notes that the budget has allowed something.
func (l *line) open() {
	l.openings++
	clear(l.closed)
}

// oldest is the next one to try; nil if nobody may.
func (l *line) oldest() *guest {
	var first *guest
	for _, g := range l.guests {
		mayTry := g.standing == queued || (g.standing == parked && l.credit > 0)
		if mayTry && (first == nil || g.compare(first) < 0) {
			first = g
		}
	}
	return first
}

func (l *line) refund() { l.credit = min(l.credit, unknown-1) + 1 }
