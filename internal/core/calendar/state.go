package calendar

import (
	"fmt"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	// horizon bounds the look at windows. Those that recur weekly are open for less, unless they
	// have no gap at all.
	horizon = 8 * 24 * time.Hour
	// lastYear is the last year that an API object can hold.
	lastYear = 9999
	// reasonBytes bounds the reason of a blackout in a message.
	reasonBytes = 100
)

// State says whether nodes may start, and for how long.
type State struct {
	Open bool
	// Until is the end of the open period, or the next opening if it is not open. Zero is never;
	// an end of windows that is more than 8 days ahead is never, too.
	Until time.Time
	// Length is the length of the open period, from its opening to Until; 0 if it has no opening
	// or no end.
	Length time.Duration
	// WakeTime is the next time when any of this may change; zero is never.
	WakeTime time.Time
	// Reason is v1alpha1.RolloutWaitsForWindow or v1alpha1.RolloutWaitsForBlackout if it is not
	// open.
	Reason string
	// Message describes the next opening, for people, if it is not open. It does not depend on
	// the time that is left.
	Message string
}

// At returns the state at a time.
func (c *Calendar) At(now time.Time) State {
	s := c.at(now)
	s.WakeTime = s.Until
	if s.Open && s.Until.IsZero() && len(c.windows) > 0 {
		s.WakeTime = now.Add(horizon / 2)
	}
	for _, b := range c.blackouts {
		for _, at := range []time.Time{b.start, b.end} {
			if at.After(now) && (s.WakeTime.IsZero() || at.Before(s.WakeTime)) {
				s.WakeTime = until(at)
			}
		}
	}
	return s
}

func (c *Calendar) at(now time.Time) State {
	for _, b := range c.closed {
		if b.contains(now) {
			return c.inBlackout(now)
		}
	}
	period, open := c.period(now)
	if !open {
		return c.outside(now)
	}
	for _, b := range c.closed {
		if !b.end.After(now) && b.end.After(period.start) {
			period.start = b.end
		}
		if b.start.After(now) && (period.end.IsZero() || b.start.Before(period.end)) {
			period.end = b.start
		}
	}
	s := State{Open: true, Until: period.end}
	if !period.start.IsZero() && !period.end.IsZero() {
		s.Length = period.end.Sub(period.start)
	}
	return s
}

// period returns the union of windows that are open without a gap. Ends beyond the horizon are
// zero.
func (c *Calendar) period(now time.Time) (period span, open bool) {
	if len(c.windows) == 0 {
		return span{}, true
	}
	var all []span
	for i := range c.windows {
		// A day more, as the first one may begin before its windows.
		c.windows[i].between(now.Add(-horizon-day*time.Second), now.Add(horizon), func(s span) bool {
			all = append(all, s)
			return true
		})
	}
	for _, s := range merge(all) {
		if !s.contains(now) {
			continue
		}
		if now.Sub(s.start) > horizon {
			s.start = time.Time{}
		}
		if s.end.Sub(now) > horizon {
			s.end = time.Time{}
		}
		return s, true
	}
	return span{}, false
}

// opening returns the first time that is in a window and in no blackout, and its zone.
func (c *Calendar) opening(now time.Time) (at time.Time, zone *time.Location) {
	at, zone = c.inWindow(now)
	for _, b := range c.closed {
		if b.contains(at) {
			at, zone = c.inWindow(b.end)
		}
	}
	return at, zone
}

// inWindow returns the first time from now on that is in a window.
func (c *Calendar) inWindow(now time.Time) (first time.Time, zone *time.Location) {
	if len(c.windows) == 0 {
		return now, time.UTC
	}
	for i := range c.windows {
		w := &c.windows[i]
		w.between(now, now.Add(horizon), func(s span) bool {
			if !s.end.After(now) {
				return true
			}
			if s.start.Before(now) {
				s.start = now
			}
			if zone == nil || s.start.Before(first) {
				first, zone = s.start, w.zone
			}
			return false
		})
	}
	return first, zone
}

func (c *Calendar) outside(now time.Time) State {
	at, zone := c.opening(now)
	return State{Until: until(at), Reason: v1alpha1.RolloutWaitsForWindow, Message: fmt.Sprintf("The next window opens %s.", describe(at, zone))}
}

func (c *Calendar) inBlackout(now time.Time) State {
	var longest blackout
	for _, b := range c.blackouts {
		if b.contains(now) && b.end.After(longest.end) {
			longest = b
		}
	}
	at, zone := c.opening(now)
	message := "A blackout lasts until " + describe(longest.end, zone)
	if longest.reason != "" {
		message = fmt.Sprintf("The blackout %q lasts until %s", excerpt.Of(longest.reason, reasonBytes), describe(longest.end, zone))
	}
	if !at.Equal(longest.end) && !until(at).IsZero() {
		message += ", and the next window opens " + describe(at, zone)
	}
	return State{Until: until(at), Reason: v1alpha1.RolloutWaitsForBlackout, Message: message + "."}
}

// until returns a time that an API object can hold, or zero.
func until(at time.Time) time.Time {
	if at.UTC().Year() >= lastYear {
		return time.Time{}
	}
	return at
}

func describe(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("Mon 2006-01-02 15:04 MST")
}
