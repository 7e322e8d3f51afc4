// Package calendar decides when the windows and blackouts of a NodeRollout let nodes start.
//
// A time of day stands for the first instant at which clocks in the zone show it, or a later time
// if they skip it. So a window is an hour longer or shorter on days when clocks change; one that
// is skipped altogether opens after the skipped time, for its usual length.
package calendar

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// most is the number of windows, and of blackouts, that a calendar can have.
const most = 32

// Calendar holds windows and blackouts. The zero value is always open.
type Calendar struct {
	windows   []window
	blackouts []blackout
	// closed has the blackouts in the order of time, overlapping and adjacent ones merged.
	closed []span
}

// window recurs on days; from and to are seconds since the midnight that the day begins with.
type window struct {
	days     [7]bool
	from, to int64
	zone     *time.Location
}

type blackout struct {
	span
	reason string
}

// span includes its start, and not its end.
type span struct{ start, end time.Time }

func (s span) contains(at time.Time) bool { return !at.Before(s.start) && at.Before(s.end) }

// Read compiles windows and blackouts. An error is a *field.Error that names the field at fault,
// such as spec.windows[2].timeZone.
func Read(windows []v1alpha1.MaintenanceWindow, blackouts []v1alpha1.Blackout) (*Calendar, error) {
	spec := field.NewPath("spec")
	zones := map[string]*time.Location{}
	c := &Calendar{}
	if len(windows) > most {
		return nil, field.TooMany(spec.Child("windows"), len(windows), most)
	}
	if len(blackouts) > most {
		return nil, field.TooMany(spec.Child("blackouts"), len(blackouts), most)
	}
	for i, w := range windows {
		read, fault := readWindow(spec.Child("windows").Index(i), w, zones)
		if fault != nil {
			return nil, fault
		}
		c.windows = append(c.windows, read)
	}
	for i, b := range blackouts {
		if !b.StartTime.Time.Before(b.EndTime.Time) {
			return nil, field.Invalid(spec.Child("blackouts").Index(i).Child("endTime"), b.EndTime, "must be after startTime")
		}
		c.blackouts = append(c.blackouts, blackout{span{b.StartTime.Time, b.EndTime.Time}, b.Reason})
		c.closed = append(c.closed, span{b.StartTime.Time, b.EndTime.Time})
	}
	c.closed = merge(c.closed)
	return c, nil
}

func readWindow(path *field.Path, w v1alpha1.MaintenanceWindow, zones map[string]*time.Location) (window, *field.Error) {
	read := window{days: [7]bool{true, true, true, true, true, true, true}}
	if len(w.Days) > 0 {
		read.days = [7]bool{}
	}
	for i, day := range w.Days {
		number := slices.Index(days, day)
		if number < 0 {
			return read, field.NotSupported(path.Child("days").Index(i), day, days)
		}
		read.days[number] = true
	}
	var ok bool
	if read.from, ok = readTime(w.From); !ok {
		return read, field.Invalid(path.Child("from"), w.From, notTime)
	}
	if read.to, ok = readTime(w.To); !ok {
		return read, field.Invalid(path.Child("to"), w.To, notTime)
	}
	if read.to <= read.from {
		read.to += day
	}
	if zones[w.TimeZone] == nil {
		zone, err := loadZone(w.TimeZone)
		if err != nil {
			return read, field.Invalid(path.Child("timeZone"), w.TimeZone, err.Error())
		}
		zones[w.TimeZone] = zone
	}
	read.zone = zones[w.TimeZone]
	return read, nil
}

// LengthOf returns the time from the start of a window to its end on clocks that do not change, at
// most a day.
func LengthOf(w v1alpha1.MaintenanceWindow) (time.Duration, error) {
	read, fault := readWindow(field.NewPath("window"), w, map[string]*time.Location{})
	if fault != nil {
		return 0, fault
	}
	return time.Duration(read.to-read.from) * time.Second, nil
}

// merge sorts spans and joins those that overlap or are adjacent.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.start.Compare(b.start) })
	var merged []span
	for _, s := range spans {
		last := len(merged) - 1
		switch {
		case last < 0 || s.start.After(merged[last].end):
			merged = append(merged, s)
		case s.end.After(merged[last].end):
			merged[last].end = s.end
		}
	}
	return merged
}
