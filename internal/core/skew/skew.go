// Package skew decides whether the manager's clock is trusted, by the Date headers of an API
// server's answers. An answer was dated in whole seconds between its request and its arrival, so
// only a skew outside these bounds is certain. The median of the last few answers counts. Before
// there are three, the clock is not trusted. A skewed clock ends nothing.
package skew

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// Limit is the tolerated difference of the clocks.
	Limit = 30 * time.Second
	// Window is the number of last answers that count.
	Window = 5
	// Lifetime is the time for which an answer counts.
	Lifetime      = 15 * time.Minute
	leastAnswers  = 3
	longestAnswer = 10 * time.Second
	// farthest bounds the difference of a date.
	farthest = 100 * 365 * 24 * time.Hour
	// resolution limits the precision of an HTTP date.
	resolution = time.Second
	// margin is the hysteresis: the skew has to be that far below the limit for the clock to be
	// trusted again, and to change by that much for another correction.
	margin = 5 * time.Second
)

const (
	// Message explains in a status why a skewed clock blocks something.
	Message = "The clocks of the manager and of the API server differ by more than 30s, or by an unknown amount. " +
		"Until they agree, nothing that cannot be undone is done because of the time."
	// Suggestion belongs to Message.
	Suggestion = "See what time it is on the machines of the manager and of the API server, and whether it comes from somewhere: timedatectl"
)

// Earliest returns now, or the zero time while the clock is skewed, so that nothing ends too early.
func Earliest(now time.Time, skewed bool) time.Time {
	if skewed {
		return time.Time{}
	}
	return now
}

// Bounds bounds how far our clock is ahead of another one; negative is behind.
type Bounds struct{ Least, Most time.Duration }

// BoundsOf returns the bounds of an answer by our times; false if it was slow or our clock was set.
func BoundsOf(sent, received, date time.Time) (b Bounds, ok bool) {
	took := received.Sub(sent)
	earliest := min(max(sent.Sub(date), -farthest), farthest)
	return Bounds{Least: earliest - resolution, Most: earliest + took}, took >= 0 && took <= longestAnswer
}

// Shift returns the bounds after our clock was set forward.
func (b Bounds) Shift(forward time.Duration) Bounds {
	return Bounds{b.Least + forward, b.Most + forward}
}

func (b Bounds) certain() time.Duration {
	switch {
	case b.Least > 0:
		return b.Least
	case b.Most < 0:
		return b.Most
	}
	return 0
}

// Median returns how far our clock is certainly ahead, by the last answers; known is false if there
// are too few. Of the two in the middle the larger one counts.
func Median(answers []Bounds) (ahead time.Duration, known bool) {
	if len(answers) < leastAnswers {
		return 0, false
	}
	sorted := make([]time.Duration, len(answers))
	for i, b := range answers {
		sorted[i] = b.certain()
	}
	slices.Sort(sorted)
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	return slices.MaxFunc([]time.Duration{low, high}, func(a, b time.Duration) int { return cmp.Compare(a.Abs(), b.Abs()) }), true
}

// AtMost returns how far our clock may be ahead, by the median of the answers: subtracting it never
// yields a time ahead of the other clock. Known is false if there are no answers.
func AtMost(answers []Bounds) (ahead time.Duration, known bool) {
	if len(answers) == 0 {
		return 0, false
	}
	sorted := make([]time.Duration, len(answers))
	for i, b := range answers {
		sorted[i] = b.Most
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2], true
}

// Verdict is the state of our clock. The zero Verdict knows nothing.
type Verdict struct {
	Known bool
	// Ahead is the lead of our clock if it is too large, otherwise 0; unchanged while unknown.
	Ahead time.Duration
}

// Next returns the verdict that follows from the last answers.
func (v Verdict) Next(answers []Bounds) Verdict {
	ahead, known := Median(answers)
	limit := Limit
	if v.Ahead != 0 {
		limit -= margin
	}
	switch {
	case !known:
		return Verdict{Ahead: v.Ahead}
	case ahead.Abs() <= limit:
		return Verdict{Known: true}
	case v.Ahead != 0 && (ahead-v.Ahead).Abs() < margin:
		return Verdict{Known: true, Ahead: v.Ahead}
	default:
		return Verdict{Known: true, Ahead: ahead.Round(time.Second)}
	}
}

// Correct returns the time of the API server, as far as our clock is known to be wrong.
func (v Verdict) Correct(now time.Time) time.Time { return now.Add(-v.Ahead) }

// Skewed returns true while the clock is not trusted.
func (v Verdict) Skewed() bool { return !v.Known || v.Ahead != 0 }

// String returns how far our clock is ahead.
func (v Verdict) String() string {
	switch {
	case !v.Known:
		return fmt.Sprintf("The skew of the manager's clock is unknown: fewer than %d answers of the API server in the last %s had a date.", leastAnswers, Lifetime)
	case v.Ahead < 0:
		return fmt.Sprintf("The manager's clock is at least %s behind that of the API server.", -v.Ahead)
	default:
		return fmt.Sprintf("The manager's clock is at least %s ahead of that of the API server.", v.Ahead)
	}
}
