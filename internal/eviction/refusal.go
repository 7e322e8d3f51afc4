package eviction

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// ReportAfter sets how long a refusal has to last before it is written. Most pods of a budget wait for
// less.
const ReportAfter = time.Second

const (
	// Throttling and lost races are reported from the fifth in a row.
	persistent = 5

	// longestPause is the retry interval of the deletion-process page.
	firstRefusedPause, longestPause         = time.Second, 20 * time.Second
	firstContendedPause, lastContendedPause = 100 * time.Millisecond, 10 * time.Second
	leastThrottledPause                     = time.Second
	// A postponed eviction is carried out by others, or given up if it is not repeated for minutes.
	firstPostponedPause, lastPostponedPause = time.Second, evacuation.AttemptInterval
)

// pause returns how long to wait after the nth failure in a row. Jitter is from 0 to 1. A refusal may
// demand a longer pause, up to evacuation.LongestPause.
func pause(outcome evacuation.Outcome, failures int, jitter float64) time.Duration {
	asked := min(outcome.RetryAfter, evacuation.LongestPause)
	switch outcome.Result {
	case evacuation.Throttled:
		wait := max(asked, leastThrottledPause)
		return min(wait+time.Duration(jitter*float64(wait)/4), evacuation.LongestPause)
	case evacuation.Postponed:
		return max(asked, growing(firstPostponedPause, lastPostponedPause, failures, jitter))
	case evacuation.Contended:
		return growing(firstContendedPause, lastContendedPause, failures, jitter)
	default:
		return max(asked, growing(firstRefusedPause, longestPause, failures, jitter))
	}
}

// growing doubles with every failure; jitter subtracts up to a quarter.
func growing(first, last time.Duration, failures int, jitter float64) time.Duration {
	wait := last
	if doublings := failures - 1; doublings < 32 && first<<doublings < last {
		wait = first << doublings
	}
	return wait - time.Duration(jitter*float64(wait)/4)
}

// note keeps a refusal for the next report.
func (p *waitingPod) note(outcome evacuation.Outcome, now time.Time) {
	passing := outcome.Result == evacuation.Throttled || outcome.Result == evacuation.Contended
	if passing && p.failures < persistent {
		return
	}
	if p.refusal.Times == 0 {
		p.refused = now
	}
	p.refusal = evacuation.Refusal{Outcome: outcome, Times: p.refusal.Times + 1}
}

// refusal returns the last refusal of a pod; empty if there is none.
func (c *Caller) refusal(name types.NamespacedName) evacuation.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.waiting[c.key(name)]; p != nil {
		return p.refusal.Outcome
	}
	return evacuation.Outcome{}
}

// Unreported returns the refusals that the status of the pod's Evacuation does not show yet, and when
// they are due to be written; nil if there are none.
func (c *Caller) Unreported(name types.NamespacedName, status v1alpha1.EvacuationStatus) (*evacuation.Refusal, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.waiting[c.key(name)]
	if p == nil || p.refusal.Times == 0 {
		return nil, time.Time{}
	}
	refusal, due := p.refusal, p.refused.Add(ReportAfter)
	if every := evacuation.ReportEvery(status, refusal); every > 0 {
		// After a restart the time of the last write is unknown.
		since := p.reported
		if since.IsZero() {
			since = p.refused
		}
		due = later(due, since.Add(every))
	}
	return &refusal, due
}

// Wrote notes that refusals were written.
func (c *Caller) Wrote(name types.NamespacedName, refusal evacuation.Refusal, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.waiting[c.key(name)]; p != nil {
		p.refusal.Times -= refusal.Times
		p.reported = now
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
