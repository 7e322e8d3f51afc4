package eviction

import (
	"math"
	"time"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

const (
	// slowTry is the time for which a try keeps the next pod of its budget from trying. The
	// API server settles a race for a budget by making the losers wait for half a
	// second, so that one after the other is much faster than all at once; but
	// nobody waits for one that has lost such a race to another client.
	slowTry = 50 * time.Millisecond
	// maxTries is how many tries for one budget may be under way, slow ones and all.
	maxTries = 8
	// unknown is the credit of a budget of which nothing is known.
	unknown = math.MaxInt32
)

// budgetQueue is the pods of one budget.
type budgetQueue struct {
	// credit is how many of those who were refused may try again.
	credit int32
	// openings counts how often the budget was seen to allow something.
	openings int
	waiting  map[podKey]*waitingPod
	// tries are the pods that are trying, with true if they are slow.
	tries map[podKey]bool
	// closed is until when nobody need ask again who was refused, of the pods that
	// are ready and of those that are not: for each of the two the budget has one
	// answer, and one pod asks for all.
	closed map[bool]time.Time
}

func newBudgetQueue() *budgetQueue {
	return &budgetQueue{
		credit:  unknown,
		waiting: map[podKey]*waitingPod{},
		tries:   map[podKey]bool{},
		closed:  map[bool]time.Time{},
	}
}

// hasTurn reports whether somebody may begin to try.
func (q *budgetQueue) hasTurn() bool {
	for _, slow := range q.tries {
		if !slow {
			return false
		}
	}
	return len(q.tries) < maxTries
}

func (q *budgetQueue) take(p *waitingPod) {
	q.tries[p.key] = false
	q.credit = max(q.credit-1, 0)
	p.state = trying
}

// account corrects what is known of the budget by what became of a try. A refusal
// that is older than the last opening says nothing about it.
func (q *budgetQueue) account(p *waitingPod, outcome evacuation.Outcome, openings int) {
	switch outcome.Result {
	case evacuation.Evicted:
	case evacuation.Budgeted:
		if q.openings == openings {
			q.close(p)
		}
	default:
		q.refund()
	}
}

// close notes that a budget has refused. One that keeps a pod that is not ready
// keeps the ready ones, too; not so the other way round.
func (q *budgetQueue) close(p *waitingPod) {
	q.credit = 0
	q.closed[true] = p.notBefore
	if !p.ready {
		q.closed[false] = p.notBefore
	}
}

// open notes that the budget has allowed something.
func (q *budgetQueue) open() {
	q.openings++
	clear(q.closed)
}

// oldest returns the next one to try; nil if nobody may.
func (q *budgetQueue) oldest() *waitingPod {
	var first *waitingPod
	for _, p := range q.waiting {
		mayTry := p.state == queued || (p.state == waitingForBudget && q.credit > 0)
		if mayTry && (first == nil || p.compare(first) < 0) {
			first = p
		}
	}
	return first
}

func (q *budgetQueue) refund() { q.credit = min(q.credit, unknown-1) + 1 }
