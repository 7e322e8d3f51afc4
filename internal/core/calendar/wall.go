package calendar

import (
	"errors"
	"fmt"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const day = 24 * 60 * 60

const notTime = "must be a time of day, as HH:MM, from 00:00 to 23:59"

// days are in the order of time.Weekday.
var days = []v1alpha1.Weekday{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// readTime returns the seconds since midnight of HH:MM.
func readTime(text string) (seconds int64, ok bool) {
	at, err := time.Parse("15:04", text)
	return int64(at.Hour()*60+at.Minute()) * 60, err == nil && len(text) == len("15:04")
}

// loadZone loads a time zone; an empty name is UTC.
func loadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New("time zone Local differs between machines: use a name such as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q: use a name such as Europe/Berlin", name)
	}
	return zone, nil
}

// clock returns what clocks show, as the seconds since 1970-01-01 00:00 of the same clocks.
func clock(at time.Time, zone *time.Location) int64 {
	_, offset := at.In(zone).Zone()
	return at.Unix() + int64(offset)
}

// instant returns the first instant at which clocks show the time, or a later one if they skip it.
func instant(shown int64, zone *time.Location) time.Time {
	at := time.Date(1970, 1, 1+int(shown/day), 0, 0, int(shown%day), 0, zone)
	start, end := at.ZoneBounds()
	switch is := clock(at, zone); {
	case is < shown:
		return end
	case is > shown:
		return start
	case start.IsZero():
		return at
	}
	_, offset := start.Add(-1).Zone()
	if earlier := time.Unix(shown-int64(offset), 0); earlier.Before(start) {
		return earlier.In(zone)
	}
	return at
}

// on returns the window of a day, as its number since 1970-01-01.
func (w *window) on(number int64) span {
	s := span{instant(number*day+w.from, w.zone), instant(number*day+w.to, w.zone)}
	if !s.start.Before(s.end) {
		s.end = s.start.Add(time.Duration(w.to-w.from) * time.Second)
	}
	return s
}

// between calls visit for the windows of the days around two times, in the order of their days,
// until it returns false.
func (w *window) between(from, to time.Time, visit func(span) bool) {
	first, last := clock(from, w.zone)/day, clock(to, w.zone)/day
	// A window of the day before yesterday may be open yet if clocks skip a day, and one of
	// tomorrow already if they are set back at midnight.
	for number := first - 2; number <= last+1; number++ {
		// 1970-01-01 was a Thursday.
		if w.days[((number+4)%7+7)%7] && !visit(w.on(number)) {
			return
		}
	}
}
