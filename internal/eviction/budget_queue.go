package eviction

import (
	"math"
	"time"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

const (
	// slowTry limits how long a try delays the next pod of its budget. The API server settles a race for
	// a budget by delaying the losers for half a second, so one after the other is much faster; but
	// no pod waits for one that lost such a race to another client.
	slowTry = 50 * time.Millisecond
	// maxTries limits the tries of one budget that are under way, with the slow ones.
	maxTries = 8
	// unknown is the credit of a budget that was not seen yet.
	unknown = math.MaxInt32
)

// budgetQueue holds the pods of one budget.
type budgetQueue struct {
	// credit is the number of refused pods that may be tried again.
	credit int32
	// openings counts how often the budget was seen to allow disruptions.
	openings int
	waiting  map[podKey]*waitingPod
	// tries are under way; the value is true for slow ones.
	tries map[podKey]bool
	// closed is until when a refusal holds for all pods that are ready (true) or not (false).
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

// isFree reports whether another try may begin.
func (q *budgetQueue) isFree() bool {
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

// account updates the credit by the result of a try. A refusal that is older than the last opening
// does not close the budget.
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

// close notes a refusal. A budget that refuses a pod that is not ready refuses the ready ones, too,
// but not vice versa.
func (q *budgetQueue) close(p *waitingPod) {
	q.credit = 0
	q.closed[true] = p.notBefore
	if !p.ready {
		q.closed[false] = p.notBefore
	}
}

// open notes that the budget allows disruptions.
func (q *budgetQueue) open() {
	q.openings++
	clear(q.closed)
}

// oldest returns the next pod to try; nil if there is none.
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
