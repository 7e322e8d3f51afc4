package calendar_test

import (
	"errors"
	"os"
	"testing"
	"time"
	_ "time/tzdata" // as images have no zoneinfo

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/calendar"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func at(t testing.TB, text string) time.Time {
	t.Helper()
	read, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func window(t testing.TB, text string) v1alpha1.MaintenanceWindow {
	t.Helper()
	w, err := calendar.ParseWindow(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func blackout(t testing.TB, from, to, reason string) v1alpha1.Blackout {
	t.Helper()
	return v1alpha1.Blackout{StartTime: metav1.NewTime(at(t, from)), EndTime: metav1.NewTime(at(t, to)), Reason: reason}
}

// spec is the windows and blackouts of a test.
type spec struct {
	windows   []string
	blackouts []v1alpha1.Blackout
}

func (s spec) read(t testing.TB) *calendar.Calendar {
	t.Helper()
	var windows []v1alpha1.MaintenanceWindow
	for _, text := range s.windows {
		windows = append(windows, window(t, text))
	}
	c, err := calendar.Read(windows, s.blackouts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// expect compares a state. An empty until is zero.
func expect(t *testing.T, got calendar.State, reason, until string, length time.Duration) {
	t.Helper()
	if got.Message != "" {
		golden.Message(t, got.Reason, got.Message)
	}
	ends := ""
	if !got.Until.IsZero() {
		ends = got.Until.UTC().Format(time.RFC3339)
	}
	if got.Open != (reason == "") || got.Reason != reason || ends != until || got.Length != length {
		t.Errorf("got %+v, want reason %q, until %q, length %s", got, reason, until, length)
	}
	if (got.Message == "") != got.Open {
		t.Errorf("open %v with message %q", got.Open, got.Message)
	}
}

func TestWindowHasLengthOfLocalClocks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		window   string
		from, to string // UTC
	}{
		"Berlin, a usual night":                   {"mon-fri 22:00-04:00 Europe/Berlin", "2026-11-30T21:00:00Z", "2026-12-01T03:00:00Z"},
		"Berlin, the night into summer":           {"sat 22:00-04:00 Europe/Berlin", "2026-03-28T21:00:00Z", "2026-03-29T02:00:00Z"},
		"Berlin, the night into winter":           {"sat 22:00-04:00 Europe/Berlin", "2026-10-24T20:00:00Z", "2026-10-25T03:00:00Z"},
		"Berlin, a start that is skipped":         {"sun 02:30-05:00 Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T03:00:00Z"},
		"Berlin, an end that is skipped":          {"sun 01:00-02:30 Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"},
		"Berlin, a window that is skipped":        {"sun 02:15-02:45 Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"},
		"Berlin, a start that comes twice":        {"sun 02:30-05:00 Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T04:00:00Z"},
		"Berlin, an end that comes twice":         {"sun 01:00-02:30 Europe/Berlin", "2026-10-24T23:00:00Z", "2026-10-25T00:30:00Z"},
		"New York, the night into summer":         {"sat 22:00-04:00 America/New_York", "2026-03-08T03:00:00Z", "2026-03-08T08:00:00Z"},
		"New York, the night into winter":         {"sat 22:00-04:00 America/New_York", "2026-11-01T02:00:00Z", "2026-11-01T09:00:00Z"},
		"Lord Howe, 30 minutes into summer":       {"sun 01:00-04:00 Australia/Lord_Howe", "2026-10-03T14:30:00Z", "2026-10-03T17:00:00Z"},
		"Lord Howe, 30 minutes into winter":       {"sun 01:00-04:00 Australia/Lord_Howe", "2026-04-04T14:00:00Z", "2026-04-04T17:30:00Z"},
		"Lord Howe, a window that is skipped":     {"sun 02:05-02:25 Australia/Lord_Howe", "2026-10-03T15:30:00Z", "2026-10-03T15:50:00Z"},
		"Santiago, a midnight that is skipped":    {"sun 00:00-03:00 America/Santiago", "2026-09-06T04:00:00Z", "2026-09-06T06:00:00Z"},
		"Santiago, an hour before midnight again": {"sat 23:30-01:00 America/Santiago", "2026-04-05T02:30:00Z", "2026-04-05T05:00:00Z"},
		"Sao Paulo, a midnight that is skipped":   {"sun 00:00-00:00 America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		"Cairo, a midnight that is skipped":       {"fri 00:00-06:00 Africa/Cairo", "2026-04-23T22:00:00Z", "2026-04-24T03:00:00Z"},
		"St. John's, a midnight before the last":  {"sun 00:00-02:00 America/St_Johns", "2010-11-07T02:30:00Z", "2010-11-07T05:30:00Z"},
		"Apia, a day that is skipped":             {"fri 09:00-17:00 Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T18:00:00Z"},
		"UTC, across the end of a year":           {"thu 22:00-04:00", "2026-12-31T22:00:00Z", "2027-01-01T04:00:00Z"},
		"a day":                                   {"wed 06:00-06:00 UTC", "2026-12-02T06:00:00Z", "2026-12-03T06:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := spec{windows: []string{test.window}}.read(t)
			from, to := at(t, test.from), at(t, test.to)
			expect(t, c.At(from.Add(-time.Second)), v1alpha1.RolloutWaitsForWindow, test.from, 0)
			expect(t, c.At(from), "", test.to, to.Sub(from))
			expect(t, c.At(to.Add(-time.Second)), "", test.to, to.Sub(from))
			if after := c.At(to); after.Open || !after.Until.After(to) {
				t.Errorf("at its end: %+v", after)
			}
		})
	}
}

func TestLengthOfAWindow(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"22:00-04:00": 6 * time.Hour, "sat 02:15-02:45 Europe/Berlin": 30 * time.Minute, "06:00-06:00": 24 * time.Hour, "00:00-24:00": 24 * time.Hour,
	} {
		if got, err := calendar.LengthOf(window(t, text)); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if length, err := calendar.LengthOf(v1alpha1.MaintenanceWindow{From: "22:00", To: "4:00"}); err == nil {
		t.Errorf("an invalid end gives %s", length)
	}
}

// stateTest is what a calendar says at a time. An empty reason is open, an empty until zero.
type stateTest struct {
	now, reason, until string
	length             time.Duration
	windows            []string
	blackouts          []v1alpha1.Blackout
}

func checkStates(t *testing.T, tests map[string]stateTest) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, spec{test.windows, test.blackouts}.read(t).At(at(t, test.now)), test.reason, test.until, test.length)
		})
	}
}

const night = "mon-fri 22:00-04:00 Europe/Berlin"

func TestWindowStates(t *testing.T) {
	t.Parallel()
	const closed = v1alpha1.RolloutWaitsForWindow
	checkStates(t, map[string]stateTest{
		"nothing is always open":                   {"2026-11-30T12:00:00Z", "", "", 0, nil, nil},
		"an opening on the same day":               {"2026-11-30T12:00:00Z", closed, "2026-11-30T21:00:00Z", 0, []string{night}, nil},
		"an opening after the weekend":             {"2026-11-28T12:00:00Z", closed, "2026-11-30T21:00:00Z", 0, []string{night}, nil},
		"an opening a week ahead":                  {"2026-11-30T03:15:00Z", closed, "2026-12-07T02:15:00Z", 0, []string{"mon 08:00-09:00 Asia/Kathmandu"}, nil},
		"adjacent windows are one":                 {"2026-11-30T22:30:00Z", "", "2026-11-30T23:00:00Z", 3 * time.Hour, []string{"mon 20:00-22:00 UTC", "mon 22:00-23:00 UTC", "tue 23:00-01:00 Europe/Berlin"}, nil},
		"overlapping windows of two zones are one": {"2026-12-05T02:00:00Z", "", "2026-12-05T07:00:00Z", 10 * time.Hour, []string{night, "fri 20:00-02:00 America/New_York"}, nil},
		"days without a gap have no end":           {"2026-12-05T02:00:00Z", "", "", 0, []string{"daily 00:00-12:00 Europe/Berlin", "12:00-24:00 Europe/Berlin"}, nil},
	})
}

func TestBlackoutStates(t *testing.T) {
	t.Parallel()
	const closed, inBlackout = v1alpha1.RolloutWaitsForWindow, v1alpha1.RolloutWaitsForBlackout
	black := func(from, to, reason string) v1alpha1.Blackout { return blackout(t, from, to, reason) }
	freeze := black("2026-12-20T00:00:00Z", "2027-01-07T00:00:00Z", "change freeze")
	two := []v1alpha1.Blackout{freeze, black("2026-12-01T00:00:00Z", "2026-12-19T00:00:00Z", "")}
	cuts := []v1alpha1.Blackout{black("2026-11-30T20:00:00Z", "2026-11-30T22:00:00Z", ""), black("2026-12-01T02:00:00Z", "2026-12-01T05:00:00Z", "")}
	adjacent := []v1alpha1.Blackout{freeze, black("2027-01-07T00:00:00Z", "2027-01-10T00:00:00Z", "inventory")}
	nested := []v1alpha1.Blackout{black("2026-12-24T00:00:00Z", "2026-12-25T00:00:00Z", "party"), freeze}
	all := []v1alpha1.Blackout{black("2026-11-30T20:00:00Z", "2026-12-01T22:00:00Z", "")}
	between := []v1alpha1.Blackout{black("2026-12-20T00:00:00Z", "2027-01-06T12:00:00Z", "")}
	final := []v1alpha1.Blackout{black("2026-12-20T00:00:00Z", "9999-12-31T23:59:59Z", "retired")}
	windows, one := []string{night}, []v1alpha1.Blackout{freeze}
	checkStates(t, map[string]stateTest{
		"a blackout ends days without a gap":                {"2026-12-05T02:00:00Z", "", "2026-12-20T00:00:00Z", 0, []string{"daily 00:00-00:00 Europe/Berlin"}, one},
		"a blackout that comes ends the open time":          {"2026-11-30T12:00:00Z", "", "2026-12-20T00:00:00Z", 0, nil, one},
		"between two blackouts":                             {"2026-12-19T12:00:00Z", "", "2026-12-20T00:00:00Z", 24 * time.Hour, nil, two},
		"a blackout cuts the begin and the end of a window": {"2026-11-30T23:00:00Z", "", "2026-12-01T02:00:00Z", 4 * time.Hour, windows, cuts},
		"a window opens at the end of a blackout":           {"2026-11-30T12:00:00Z", closed, "2026-11-30T22:00:00Z", 0, windows, cuts},
		"a window is all in a blackout":                     {"2026-11-30T12:00:00Z", closed, "2026-12-01T22:00:00Z", 0, windows, all},
		"a blackout without windows":                        {"2026-12-24T12:00:00Z", inBlackout, "2027-01-07T00:00:00Z", 0, nil, one},
		"a blackout that ends in a window":                  {"2026-12-24T12:00:00Z", inBlackout, "2027-01-07T00:00:00Z", 0, windows, one},
		"a blackout that ends between windows":              {"2026-12-24T12:00:00Z", inBlackout, "2027-01-06T21:00:00Z", 0, windows, between},
		"blackouts that follow each other":                  {"2026-12-24T12:00:00Z", inBlackout, "2027-01-10T00:00:00Z", 0, nil, adjacent},
		"the longest of several blackouts":                  {"2026-12-24T12:00:00Z", inBlackout, "2027-01-07T00:00:00Z", 0, nil, nested},
		"a blackout for ever":                               {"2026-12-24T12:00:00Z", inBlackout, "", 0, windows, final},
		"the start of a blackout":                           {"2026-12-20T00:00:00Z", inBlackout, "2027-01-07T00:00:00Z", 0, nil, one},
		"a second before the end of a blackout":             {"2027-01-06T23:59:59Z", inBlackout, "2027-01-07T00:00:00Z", 0, nil, one},
		"the end of a blackout":                             {"2027-01-07T00:00:00Z", "", "", 0, nil, one},
	})
}

func TestBlackoutReasonIsBounded(t *testing.T) {
	t.Parallel()
	long := string(make([]byte, 256))
	c := spec{nil, []v1alpha1.Blackout{blackout(t, "2026-12-20T00:00:00Z", "2027-01-07T00:00:00Z", long)}}.read(t)
	if message := c.At(at(t, "2026-12-24T00:00:00Z")).Message; len(message) > 500 {
		t.Errorf("%d bytes: %q", len(message), message)
	}
}

func TestStateDoesNotChangeBeforeItsWakeTime(t *testing.T) {
	t.Parallel()
	c := spec{[]string{"mon 22:00-04:00", "mon 23:00-05:00"}, []v1alpha1.Blackout{
		blackout(t, "2026-11-25T01:00:00Z", "2026-11-26T00:00:00Z", "x"), blackout(t, "2026-11-25T12:00:00Z", "2026-11-27T00:00:00Z", "y"),
		blackout(t, "2026-12-01T01:00:00Z", "2026-12-01T03:00:00Z", "z"),
	}}.read(t)
	last := c.At(at(t, "2026-11-24T00:00:00Z"))
	changes := 0
	for now := at(t, "2026-11-24T00:00:00Z"); now.Before(at(t, "2026-12-03T00:00:00Z")); now = now.Add(time.Minute) {
		got := c.At(now)
		if got == last {
			continue
		}
		if changes++; !now.Equal(last.WakeTime) {
			t.Errorf("%s: %+v, before %+v", now, got, last)
		}
		last = got
	}
	if changes != 9 {
		t.Errorf("%d changes", changes)
	}
}

func TestWakeTimeOfWindowsWithoutEnd(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-12-05T02:00:00Z")
	if wake := (spec{windows: []string{"daily 00:00-00:00"}}).read(t).At(now).WakeTime; !wake.After(now) {
		t.Errorf("wakes at %s", wake)
	}
	if wake := (spec{}).read(t).At(now).WakeTime; !wake.IsZero() {
		t.Errorf("wakes at %s without windows", wake)
	}
	if wake := (spec{nil, []v1alpha1.Blackout{blackout(t, "2026-12-01T01:00:00Z", "9999-12-31T23:59:59Z", "z")}}).read(t).At(now).WakeTime; !wake.IsZero() {
		t.Errorf("wakes at %s in a blackout without end", wake)
	}
}

func TestReadNamesFieldAtFault(t *testing.T) {
	t.Parallel()
	good := v1alpha1.MaintenanceWindow{From: "22:00", To: "04:00"}
	change := func(change func(*v1alpha1.MaintenanceWindow)) []v1alpha1.MaintenanceWindow {
		w := good
		change(&w)
		return []v1alpha1.MaintenanceWindow{good, w}
	}
	for want, test := range map[string]struct {
		windows   []v1alpha1.MaintenanceWindow
		blackouts []v1alpha1.Blackout
	}{
		"spec.windows":              {windows: make([]v1alpha1.MaintenanceWindow, 33)},
		"spec.blackouts":            {blackouts: make([]v1alpha1.Blackout, 33)},
		"spec.windows[1].from":      {windows: change(func(w *v1alpha1.MaintenanceWindow) { w.From = "24:00" })},
		"spec.windows[1].to":        {windows: change(func(w *v1alpha1.MaintenanceWindow) { w.To = "4:00" })},
		"spec.windows[1].days[1]":   {windows: change(func(w *v1alpha1.MaintenanceWindow) { w.Days = []v1alpha1.Weekday{"mon", "Tue"} })},
		"spec.windows[1].timeZone":  {windows: change(func(w *v1alpha1.MaintenanceWindow) { w.TimeZone = "Europe/Atlantis" })},
		"spec.windows[0].timeZone":  {windows: []v1alpha1.MaintenanceWindow{{From: "22:00", To: "04:00", TimeZone: "Local"}}},
		"spec.blackouts[1].endTime": {blackouts: []v1alpha1.Blackout{blackout(t, "2026-12-20T00:00:00Z", "2027-01-07T00:00:00Z", ""), blackout(t, "2026-12-20T00:00:00Z", "2026-12-20T00:00:00Z", "")}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, err := calendar.Read(test.windows, test.blackouts)
			var fault *field.Error
			if !errors.As(err, &fault) || fault.Field != want {
				t.Fatalf("error %v, want one of field %s", err, want)
			}
			golden.Message(t, err.Error())
		})
	}
	full := make([]v1alpha1.MaintenanceWindow, 32)
	for i := range full {
		full[i] = good
	}
	freezes := make([]v1alpha1.Blackout, 32)
	for i := range freezes {
		freezes[i] = blackout(t, "2026-12-20T00:00:00Z", "2027-01-07T00:00:00Z", "")
	}
	if _, err := calendar.Read(full, freezes); err != nil {
		t.Errorf("32 of each: %v", err)
	}
}

func BenchmarkAt(b *testing.B) {
	s := spec{}
	for range 32 {
		s.windows = append(s.windows, "mon-fri 22:00-04:00 Europe/Berlin")
		s.blackouts = append(s.blackouts, blackout(b, "2026-12-01T21:00:00Z", "2026-12-02T22:00:00Z", ""))
	}
	full, one := s.read(b), spec{windows: s.windows[:1]}.read(b)
	now := at(b, "2026-11-30T22:00:00Z")
	b.Run("one window", func(b *testing.B) {
		for b.Loop() {
			one.At(now)
		}
	})
	b.Run("32 windows and blackouts", func(b *testing.B) {
		for b.Loop() {
			full.At(now)
		}
	})
}
