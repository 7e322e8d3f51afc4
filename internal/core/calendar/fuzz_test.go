package calendar_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/calendar"
)

// weeks is the time that the fuzz test goes through, minute by minute.
const weeks = 6

// places are time zones, each with a day when its clocks change.
var places = []struct{ zone, change string }{
	{"Europe/Berlin", "2026-03-29T00:00:00Z"},
	{"Europe/Berlin", "2026-10-25T00:00:00Z"},
	{"America/New_York", "2026-03-08T00:00:00Z"},
	{"America/New_York", "2026-11-01T00:00:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T00:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T00:00:00Z"},
	{"America/Santiago", "2026-04-05T00:00:00Z"},
	{"America/Santiago", "2026-09-06T00:00:00Z"},
	{"America/Sao_Paulo", "2018-11-04T00:00:00Z"},
	{"Africa/Cairo", "2026-04-23T00:00:00Z"},
	{"America/St_Johns", "2010-11-07T00:00:00Z"},
	{"Pacific/Apia", "2011-12-30T00:00:00Z"},
	{"UTC", "2026-12-31T00:00:00Z"},
}

// weekdays are in the order of time.Weekday.
var weekdays = []v1alpha1.Weekday{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// FuzzCalendarAgreesWithEachMinute compares calendars with a brute force that looks at the
// clocks of every minute.
func FuzzCalendarAgreesWithEachMinute(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 41))
		minutes := newMinutes(t, random)
		c, err := calendar.Read(minutes.windows, minutes.blackouts)
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(minutes.open) {
			changes := n > 0 && minutes.open[n] != minutes.open[n-1]
			if !changes && random.IntN(400) > 0 {
				continue
			}
			minutes.check(t, c, n)
			if changes {
				minutes.check(t, c, n-1)
			}
		}
		if t.Failed() {
			t.Logf("windows %+v\nblackouts %v", minutes.windows, minutes.blackouts)
		}
	})
}

type minutes struct {
	windows   []v1alpha1.MaintenanceWindow
	blackouts []v1alpha1.Blackout
	start     time.Time
	open      []bool
	closed    []bool // by a blackout
}

func newMinutes(t *testing.T, random *rand.Rand) *minutes {
	place := places[random.IntN(len(places))]
	m := &minutes{start: at(t, place.change).Add(-weeks / 2 * 7 * 24 * time.Hour), open: make([]bool, weeks*7*24*60), closed: make([]bool, weeks*7*24*60)}
	for range random.IntN(5) {
		w := m.randomWindow(random, place.zone)
		m.windows = append(m.windows, w)
		m.openWindow(t, w)
	}
	if len(m.windows) == 0 {
		for n := range m.open {
			m.open[n] = true
		}
	}
	for range random.IntN(4) {
		from := random.IntN(len(m.open) - 1)
		to := min(len(m.open)-1, from+1+random.IntN(6*24*60))
		m.blackouts = append(m.blackouts, v1alpha1.Blackout{StartTime: metav1.NewTime(m.at(from)), EndTime: metav1.NewTime(m.at(to))})
		for n := from; n < to; n++ {
			m.open[n], m.closed[n] = false, true
		}
	}
	return m
}

// randomWindow is often of the zone, and adjacent to the last one.
func (m *minutes) randomWindow(random *rand.Rand, zone string) v1alpha1.MaintenanceWindow {
	if random.IntN(4) == 0 {
		zone = places[random.IntN(len(places))].zone
	}
	w := v1alpha1.MaintenanceWindow{From: randomTime(random), To: randomTime(random), TimeZone: zone}
	if last := len(m.windows) - 1; last >= 0 && random.IntN(3) == 0 {
		w.From, w.Days = m.windows[last].To, m.windows[last].Days
		return w
	}
	for _, day := range weekdays {
		if random.IntN(3) == 0 {
			w.Days = append(w.Days, day)
		}
	}
	return w
}

// randomTime prefers the hours when clocks change.
func randomTime(random *rand.Rand) string {
	hour := random.IntN(24)
	if random.IntN(2) == 0 {
		hour = random.IntN(5)
	}
	return time.Date(2026, 1, 1, hour, 15*random.IntN(4), 0, 0, time.UTC).Format("15:04")
}

func (m *minutes) at(n int) time.Time { return m.start.Add(time.Duration(n) * time.Minute) }

// openWindow finds each start and end as the first minute at which clocks show it or more.
func (m *minutes) openWindow(t *testing.T, w v1alpha1.MaintenanceWindow) {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		t.Fatal(err)
	}
	const before = 4 * 24 * 60 // windows that have opened before
	shown := make([]time.Time, before+len(m.open)+before)
	for n := range shown {
		local := m.at(n - before).In(zone)
		shown[n] = time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC)
	}
	first := func(wall time.Time) int {
		n := max(0, int(wall.Sub(shown[0])/time.Minute)-2*24*60)
		for n < len(shown) && shown[n].Before(wall) {
			n++
		}
		return n
	}
	from, to := clockOf(t, w.From), clockOf(t, w.To)
	if to <= from {
		to += 24 * time.Hour
	}
	for day := shown[0].Truncate(24 * time.Hour).Add(24 * time.Hour); day.Before(shown[len(shown)-1]); day = day.Add(24 * time.Hour) {
		if !startsOn(w, day.Weekday()) {
			continue
		}
		start, end := first(day.Add(from)), first(day.Add(to))
		if start == end {
			end += int((to - from) / time.Minute)
		}
		for n := max(start-before, 0); n < min(end-before, len(m.open)); n++ {
			m.open[n] = true
		}
	}
}

func clockOf(t *testing.T, text string) time.Duration {
	read, err := time.Parse("15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(read.Hour())*time.Hour + time.Duration(read.Minute())*time.Minute
}

func startsOn(w v1alpha1.MaintenanceWindow, day time.Weekday) bool {
	return len(w.Days) == 0 || slices.Contains(w.Days, weekdays[day])
}

func (m *minutes) check(t *testing.T, c *calendar.Calendar, n int) {
	t.Helper()
	now := m.at(n).Add(30 * time.Second)
	got := c.At(now)
	if got.Open != m.open[n] || (got.Reason == v1alpha1.RolloutWaitsForBlackout) != m.closed[n] {
		t.Errorf("%s: %+v, want open %v, blackout %v", now, got, m.open[n], m.closed[n])
		return
	}
	end := n
	for end < len(m.open) && m.open[end] == m.open[n] {
		end++
	}
	if end == len(m.open) {
		return
	}
	// An end of windows far ahead may be zero.
	far := got.Open && m.at(end).Sub(now) > 8*24*time.Hour && got.Until.IsZero()
	if !far && !got.Until.Equal(m.at(end)) {
		t.Errorf("%s: %+v, want until %s", now, got, m.at(end))
	}
	start := n
	for start >= 0 && m.open[start] == m.open[n] {
		start--
	}
	if !got.Open || start < 0 || got.Until.IsZero() {
		return
	}
	length := time.Duration(end-start-1) * time.Minute
	far = now.Sub(m.at(start+1)) > 8*24*time.Hour && got.Length == 0
	if !far && got.Length != length {
		t.Errorf("%s: %+v, want length %s", now, got, length)
	}
}
