package skew_test

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/internal/core/skew"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// What an answer says for certain is only what lies outside of the time in which it
// was under way, and of the second that its date leaves out.
func TestBoundsOfAnAnswer(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		took, date time.Duration // date is by the clock of the server, from when the answer was asked for
		want       skew.Bounds
		silent     bool
	}{
		"dated in the second in which it was asked for": {took: 20 * ms, want: skew.Bounds{Least: -time.Second, Most: 20 * ms}},
		"dated in the second before":                    {took: 20 * ms, date: -time.Second, want: skew.Bounds{Least: 0, Most: 1020 * ms}},
		"dated by a clock that is behind":               {took: 20 * ms, date: -time.Minute, want: skew.Bounds{Least: 59 * time.Second, Most: time.Minute + 20*ms}},
		"dated by a clock that is ahead":                {took: 20 * ms, date: time.Minute, want: skew.Bounds{Least: -61 * time.Second, Most: -time.Minute + 20*ms}},
		"a slow answer says less":                       {took: 10 * time.Second, date: 5 * time.Second, want: skew.Bounds{Least: -6 * time.Second, Most: 5 * time.Second}},
		"a slower one says nothing":                     {took: 10*time.Second + ms, silent: true},
		"our clock was put back meanwhile":              {took: -time.Minute, silent: true},
		"our clock was put forward meanwhile":           {took: time.Hour, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := skew.BoundsOf(noon, noon.Add(test.took), noon.Add(test.date))
			if ok == test.silent {
				t.Fatalf("it says something: %v, want %v", ok, !test.silent)
			}
			if !test.silent && got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// answers are such of which each says for certain that our clock is ahead by so much.
func answers(ahead ...time.Duration) []skew.Bounds {
	var all []skew.Bounds
	for _, certain := range ahead {
		b := skew.Bounds{Least: certain, Most: certain + time.Second}
		if certain < 0 {
			b = skew.Bounds{Least: certain - time.Second, Most: certain}
		}
		if certain == 0 {
			b = skew.Bounds{Least: -time.Second / 2, Most: time.Second / 2}
		}
		all = append(all, b)
	}
	return all
}

const (
	right  = time.Duration(0)
	minute = time.Minute
)

var apart = skew.Verdict{Known: true, Ahead: 4 * minute}

// verdicts are what is thought before and after the last answers.
var verdicts = map[string]struct {
	before  skew.Verdict
	answers []skew.Bounds
	want    skew.Verdict
}{
	"no answers":          {},
	"too few answers":     {answers: answers(right, right)},
	"all is well":         {answers: answers(right, right, right), want: skew.Verdict{Known: true}},
	"up to 30 s are well": {answers: answers(30*time.Second, 30*time.Second, -30*time.Second), want: skew.Verdict{Known: true}},
	"more is too much":    {answers: answers(4*minute, 4*minute, 4*minute), want: apart},
	"behind":              {answers: answers(-minute, -minute, -minute), want: skew.Verdict{Known: true, Ahead: -minute}},
	"one odd answer stops nothing": {
		answers: answers(right, right, 24*365*time.Hour, right, right), want: skew.Verdict{Known: true},
	},
	"two odd answers stop nothing": {
		answers: answers(right, -time.Hour, right, 4*minute, right), want: skew.Verdict{Known: true},
	},
	"two odd answers in the same direction stop nothing": {
		answers: answers(4*minute, right, right, 4*minute, right), want: skew.Verdict{Known: true},
	},
	"one odd answer allows nothing": {
		before: apart, answers: answers(4*minute, 4*minute, right, 4*minute, 4*minute), want: apart,
	},
	"of three API servers one is wrong": {
		answers: answers(right, right, 4*minute, right, 4*minute), want: skew.Verdict{Known: true},
	},
	"of two the answers are halved: the larger skew counts": {
		answers: answers(right, 4*minute, right, 4*minute), want: apart,
	},
	"answers that differ in their direction": {
		answers: answers(-4*minute, 4*minute, right), want: skew.Verdict{Known: true},
	},
	"a slow answer does not say that all is well": {
		answers: append(answers(4*minute, 4*minute), skew.Bounds{Least: -5 * time.Second, Most: 6 * time.Second}), want: apart,
	},
	"the correction does not change from second to second": {
		before: apart, answers: answers(4*minute+3*time.Second, 4*minute+3*time.Second, 4*minute+3*time.Second), want: apart,
	},
	"the correction changes when it is wrong": {
		before: skew.Verdict{Known: true, Ahead: 4*minute - 5*time.Second}, answers: answers(4*minute, 4*minute, 4*minute), want: apart,
	},
	"28 s are not well again": {
		before: skew.Verdict{Known: true, Ahead: minute}, answers: answers(28*time.Second, 28*time.Second, 28*time.Second),
		want: skew.Verdict{Known: true, Ahead: 28 * time.Second},
	},
	"25 s are": {before: apart, answers: answers(25*time.Second, 25*time.Second, 25*time.Second), want: skew.Verdict{Known: true}},
	"who hears nothing any more knows what was wrong, and not that it is right": {
		before: apart, want: skew.Verdict{Ahead: 4 * minute},
	},
}

// A date that is out of bounds is as far away as any can be.
func TestDatesOutOfBounds(t *testing.T) {
	t.Parallel()
	const century = 100 * 365 * 24 * time.Hour
	for want, year := range map[skew.Bounds]int{
		{Least: -century - time.Second, Most: -century}: 9999,
		{Least: century - time.Second, Most: century}:   1,
	} {
		if got, ok := skew.BoundsOf(noon, noon, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)); got != want || !ok {
			t.Errorf("year %d: got %+v (%v), want %+v", year, got, ok, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, test := range verdicts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.before.Next(test.answers)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if trusted := test.want == (skew.Verdict{Known: true}); got.Skewed() == trusted {
				t.Errorf("skewed: %t, want %t", got.Skewed(), !trusted)
			}
		})
	}
}

// What is written down while the clock is wrong is the time of the API server.
func TestCorrect(t *testing.T) {
	t.Parallel()
	for want, v := range map[time.Time]skew.Verdict{
		noon:                       {Known: true},
		noon.Add(-4 * time.Minute): {Known: true, Ahead: 4 * time.Minute},
		noon.Add(time.Minute):      {Ahead: -time.Minute},
	} {
		if got := v.Correct(noon); !got.Equal(want) {
			t.Errorf("%+v: at noon it is %s, want %s", v, got, want)
		}
	}
}
