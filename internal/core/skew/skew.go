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
	// Limit is how far the clocks may be apart.
	Limit = 30 * time.Second
	// Window is how many answers count: the last ones.
	Window = 5
	// Lifetime is how long an answer counts. A manager whose watches run has newer ones.
	Lifetime = 15 * time.Minute
	// leastAnswers is with how many anything is known.
	leastAnswers = 3
	// longestAnswer is how long an answer may take that says anything.
	longestAnswer = 10 * time.Second
	// farthest is how far away a date is at the most: what is farther is no better.
	farthest = 100 * 365 * 24 * time.Hour
	// resolution is that of an HTTP date, which leaves out the rest of a second.
	resolution = time.Second
	// margin is by how much the skew has to be below the limit for the clock to be
	// trusted again, and how much it has to change to be corrected by another amount.
	margin = 5 * time.Second
)

const (
	// Message says why a skewed clock holds something up, in a status.
	Message = "The clocks of the manager and of the API server differ by more than 30s, or by an unknown amount. " +
		"Until they agree, nothing that cannot be undone is done because of the time."
	// Suggestion is what helps then.
	Suggestion = "See what time it is on the machines of the manager and of the API server, and whether it comes from somewhere: timedatectl"
)

// Earliest is the earliest time that it may be: now, or the zero time while the clock is
// skewed. Who compares the end of something with it never takes that for over too early.
func Earliest(now time.Time, skewed bool) time.Time {
	if skewed {
		return time.Time{}
	}
	return now
}

// Bounds are how far our clock is ahead of another one, at least and at most; it is
// behind as far as they are less than 0.
type Bounds struct{ Least, Most time.Duration }

// BoundsOf is what an answer says that was asked for and had at these times of our
// clock; ok is false if it took too long to say anything, or our clock was set
// meanwhile.
func BoundsOf(sent, received, date time.Time) (b Bounds, ok bool) {
	took := received.Sub(sent)
	earliest := min(max(sent.Sub(date), -farthest), farthest)
	return Bounds{Least: earliest - resolution, Most: earliest + took}, took >= 0 && took <= longestAnswer
}

// Shift is what is left of bounds when our clock was put forward meanwhile.
func (b Bounds) Shift(forward time.Duration) Bounds {
	return Bounds{b.Least + forward, b.Most + forward}
}

// certain is by how much our clock is certainly ahead.
func (b Bounds) certain() time.Duration {
	switch {
	case b.Least > 0:
		return b.Least
	case b.Most < 0:
		return b.Most
	}
	return 0
}

// Median is how far our clock is ahead for certain, by the last answers; known is
// false if there are too few. Of the two in the middle the larger one counts.
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

// AtMost is how far our clock may be ahead, by the median of the answers: a second more than
// it is, or less, if they come fast. Who takes so much off is never ahead of the other
// clock. Known is false if there are no answers.
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

// Verdict is what is thought of our clock. The zero Verdict is that of who knows
// nothing.
type Verdict struct {
	// Known is true if there are answers enough.
	Known bool
	// Ahead is how far our clock is ahead, if that is too far; 0 if it is not. While
	// nothing is known it is what was thought last.
	Ahead time.Duration
}

// Next is the verdict that follows from the last answers.
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

// Correct is the time of the API server, as far as our clock is known to be wrong.
// What is written down is right so also while it is skewed.
func (v Verdict) Correct(now time.Time) time.Time { return now.Add(-v.Ahead) }

// Skewed is true while the clock is not trusted.
func (v Verdict) Skewed() bool { return !v.Known || v.Ahead != 0 }

// String says how far our clock is ahead.
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
