package evacuation

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
)

const (
	// settle is how long a refusal has to last before it is worth a write: most
	// pods of a budget wait for less.
	settle = time.Second
	// persistent is from which answer in a row that says nothing about the pod
	// it is reported nevertheless.
	persistent = 5

	firstRefusedPause, lastRefusedPause     = time.Second, 15 * time.Minute
	firstContendedPause, lastContendedPause = 100 * time.Millisecond, 10 * time.Second
	leastThrottledPause                     = time.Second
)

// pause is how long to wait after the nth failure in a row. Jitter is 0 to 1.
func pause(outcome core.Outcome, failures int, jitter float64) time.Duration {
	switch outcome.Result {
	case core.Throttled:
		wait := max(outcome.RetryAfter, leastThrottledPause)
		return wait + time.Duration(jitter*float64(wait)/4)
	case core.Contended:
		return growing(firstContendedPause, lastContendedPause, failures, jitter)
	default:
		return max(outcome.RetryAfter, growing(firstRefusedPause, lastRefusedPause, failures, jitter))
	}
}

// growing doubles with every failure; jitter takes up to a quarter off.
func growing(first, last time.Duration, failures int, jitter float64) time.Duration {
	wait := last
	if doublings := failures - 1; doublings < 32 && first<<doublings < last {
		wait = first << doublings
	}
	return wait - time.Duration(jitter*float64(wait)/4)
}

// note keeps a refusal for the next report.
func (g *guest) note(outcome core.Outcome, now time.Time) {
	passing := outcome.Result == core.Throttled || outcome.Result == core.Contended
	if passing && g.failures < persistent {
		return
	}
	if g.refusal.Times == 0 {
		g.refused = now
	}
	g.refusal = core.Refusal{Outcome: outcome, Times: g.refusal.Times + 1}
}

// unreported returns what the status does not tell yet of the refusals of an
// evacuation, and when that is due to be written; nil if it tells everything.
func (r *room) unreported(key types.NamespacedName, status v1alpha1.EvacuationStatus) (*core.Refusal, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[key]
	if g == nil || g.refusal.Times == 0 {
		return nil, time.Time{}
	}
	refusal := g.refusal
	if core.News(status, refusal) {
		return &refusal, g.refused.Add(settle)
	}
	return &refusal, g.reported.Add(core.ReportInterval)
}

// wrote notes that refusals were written.
func (r *room) wrote(key types.NamespacedName, refusal core.Refusal, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.guests[key]; g != nil {
		g.refusal.Times -= refusal.Times
		g.reported = now
	}
}
