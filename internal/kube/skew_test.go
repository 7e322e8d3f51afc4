package kube

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"
)

type hall struct {
	t     *testing.T
	skew  *Skew
	ours  instant
	round http.RoundTripper
	// ahead is how far the API server's clock is ahead of the true time, took how long
	// it takes to answer, status what it answers.
	ahead, took time.Duration
	status      int
	dateless    bool
	woken       atomic.Int32
}

func newHall(t *testing.T) *hall {
	h := &hall{t: t, skew: NewSkew(), ours: instant{wall: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}, took: 20 * time.Millisecond, status: http.StatusOK}
	h.skew.clock = func() instant { return h.ours }
	h.skew.OnChange(func() { h.woken.Add(1) })
	config := &rest.Config{}
	h.skew.Measure(config)
	h.round = config.WrapTransport(h)
	return h
}

func (h *hall) trueTime() time.Time {
	return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).Add(h.ours.runs)
}

func (h *hall) pass(d time.Duration) { h.ours = instant{h.ours.wall.Add(d), h.ours.runs + d} }

// set puts our clock forward.
func (h *hall) set(forward time.Duration) { h.ours.wall = h.ours.wall.Add(forward) }

func (h *hall) RoundTrip(*http.Request) (*http.Response, error) {
	response := &http.Response{StatusCode: h.status, Body: http.NoBody, Header: http.Header{}}
	if !h.dateless {
		response.Header.Set("Date", h.trueTime().Add(h.ahead).UTC().Format(http.TimeFormat))
	}
	h.pass(h.took)
	return response, nil
}

func (h *hall) ask(times int) {
	h.t.Helper()
	for range times {
		response, err := h.round.RoundTrip(&http.Request{Method: http.MethodGet})
		if err != nil {
			h.t.Fatal(err)
		}
		_ = response.Body.Close()
		h.pass(time.Second)
	}
}

const (
	trusted = "trusted"
	unheard = "The skew of the manager's clock is unknown"
)

// says is what is thought of our clock, in a few words, and that those who wait for it
// were woken so often since they were last asked.
func (h *hall) says(want string, woken int) {
	h.t.Helper()
	synctest.Wait()
	now, skewed := h.skew.Now()
	synctest.Wait()
	if _, verdict := h.skew.judge(); skewed == (want == trusted) || skewed && !strings.Contains(verdict.String(), want) {
		h.t.Errorf("skewed: %t, %s; want %s", skewed, verdict, want)
	}
	if off := now.Sub(h.trueTime().Add(h.ahead)).Abs(); want != unheard && off > 30*time.Second {
		h.t.Errorf("it takes the time for %s, which is wrong by %s", now, off)
	}
	if earliest := Now(h.skew.Now).Earliest(); earliest.IsZero() != skewed {
		h.t.Errorf("the earliest time is %s", earliest)
	}
	if got := h.woken.Swap(0); int(got) != woken {
		h.t.Errorf("who waits was woken %d times, want %d", got, woken)
	}
}

// skewStories say what is thought of our clock.
var skewStories = map[string]func(*hall){
	"nobody has answered": func(h *hall) { h.says(unheard, 0) },
	"two answers are too few": func(h *hall) {
		h.ask(2)
		h.says(unheard, 0)
		h.ask(1)
		h.says(trusted, 1)
	},
	"our clock is wrong, and is set": func(h *hall) {
		h.set(4 * time.Minute)
		h.ask(3)
		h.says("is at least 3m59s ahead of that of the API server", 0)
		h.set(-4 * time.Minute)
		h.says(trusted, 1)
		h.ask(5)
		h.says(trusted, 0)
	},
	"our clock is put back while nobody answers": func(h *hall) {
		h.ask(5)
		h.says(trusted, 1)
		h.set(-time.Hour)
		h.says("is at least 1h0m0s behind that of the API server", 1)
	},
	"the machine sleeps, which the clock that runs does not notice": func(h *hall) {
		h.ask(5)
		h.says(trusted, 1)
		h.set(10 * time.Minute)
		h.says("is at least 9m59s ahead", 1)
		h.ahead = 10 * time.Minute
		h.ask(3)
		h.says(trusted, 1)
	},
	"the API server's clock is set": func(h *hall) {
		h.ask(5)
		h.says(trusted, 1)
		h.ahead = -time.Minute
		h.ask(2)
		h.ahead = 0
		h.says(trusted, 0)
		h.ahead = -time.Minute
		h.ask(2)
		h.says("is at least 59s ahead", 1)
		h.ahead = 0
		h.ask(2)
		h.ahead = -time.Minute
		h.says("is at least 59s ahead", 0)
		h.ahead = 0
		h.ask(1)
		h.says(trusted, 1)
	},
	"a burst of answers counts for one": func(h *hall) {
		h.ask(5)
		h.says(trusted, 1)
		h.ahead = time.Hour
		h.took = time.Millisecond
		for range 100 {
			response, err := h.round.RoundTrip(&http.Request{Method: http.MethodGet})
			if err != nil {
				h.t.Fatal(err)
			}
			_ = response.Body.Close()
		}
		h.ahead = 0
		h.says(trusted, 0)
	},
	"who is on the way says nothing": func(h *hall) {
		h.status, h.ahead = http.StatusBadGateway, time.Hour
		h.ask(9)
		h.says(unheard, 0)
	},
	"answers without a date say nothing": func(h *hall) {
		h.dateless = true
		h.ask(9)
		h.says(unheard, 0)
	},
	"watches that are answered at once do, and answers get old": func(h *hall) {
		h.ask(3)
		h.says(trusted, 1)
		h.pass(14 * time.Minute)
		h.says(trusted, 0)
		h.pass(2 * time.Minute)
		h.says(unheard, 1)
		h.ask(3)
		h.says(trusted, 1)
	},
	"a clock that runs a little too fast is believed until it is too far": func(h *hall) {
		for range 35 {
			h.ask(1)
			h.set(time.Second)
		}
		h.says("ahead", 2)
	},
}

func TestSkew(t *testing.T) {
	t.Parallel()
	for name, story := range skewStories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { story(newHall(t)) })
		})
	}
}

// A clock that nobody measures is skewed.
func TestClockWithoutSkewIsNotTrusted(t *testing.T) {
	t.Parallel()
	var none *Skew
	none.OnChange(func() { t.Error("somebody was woken") })()
	if _, skewed := none.Now(); !skewed {
		t.Error("it is trusted")
	}
}

// A manager that has just started does not know its skew yet, and does not warn.
func TestSkewIsReportedOnceItIsKnown(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		starts  func(*hall)
		reports string
	}{
		"dates come at once":          {func(h *hall) { h.ask(3) }, ""},
		"dates say that it is skewed": {func(h *hall) { h.ahead = time.Hour; h.ask(3) }, "is at least 1h0m0s behind"},
		"no dates come":               {func(*hall) {}, unheard},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t)
				var reported []string
				story.starts(h)
				go h.skew.warn(t.Context(), func(why string) { reported = append(reported, why) })
				synctest.Wait()
				if len(reported) > 0 {
					t.Errorf("it reports %q at once", reported)
				}
				time.Sleep(startup)
				synctest.Wait()
				if (len(reported) > 0) != (story.reports != "") || !strings.Contains(strings.Join(reported, ""), story.reports) {
					t.Errorf("it reports %q, want %q", reported, story.reports)
				}
			})
		})
	}
}

func TestSkewIsShown(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	for _, step := range []struct {
		happens func()
		skewed  string
		seconds string
	}{
		{func() {}, "1", ""},
		{func() { h.ask(3) }, "0", "0"},
		{func() { h.set(20 * time.Second) }, "0", "19.02"},
		{func() { h.set(40 * time.Second) }, "1", "59.02"},
		{func() { h.set(-2 * time.Minute) }, "1", "-59.96"},
	} {
		step.happens()
		want := "# HELP ebbtide_clock_skewed 1 while nothing that cannot be undone is done because of the time, since the manager's clock is not trusted; else 0.\n" +
			"# TYPE ebbtide_clock_skewed gauge\nebbtide_clock_skewed " + step.skewed + "\n"
		if step.seconds != "" {
			want += "# HELP ebbtide_clock_skew_seconds Seconds by which the manager's clock is certainly ahead of the API server's, negative if behind. Absent while unknown.\n" +
				"# TYPE ebbtide_clock_skew_seconds gauge\nebbtide_clock_skew_seconds " + step.seconds + "\n"
		}
		if err := testutil.CollectAndCompare(h.skew, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
}

// tellsTheTime fails unless the API server's time is told.
func (h *hall) tellsTheTime(when string) {
	h.t.Helper()
	if late := h.skew.Server().Sub(h.trueTime()); late > 0 || late < -1100*time.Millisecond {
		h.t.Errorf("%s it is late by %s, want at most 1.1s early", when, late)
	}
}

// Whatever our clock shows, the API server's time is told: a second too early at the most.
func TestTheTimeOfTheServer(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{0, time.Minute, -time.Minute, time.Hour, -24 * time.Hour} {
		h := newHall(t)
		h.set(off)
		if off != 0 {
			if wrong := h.skew.Server().Sub(h.trueTime()); wrong != off {
				t.Errorf("who knows nothing is wrong by %s, want our own %s", wrong, off)
			}
		}
		for range 20 {
			h.ask(1)
			h.pass(137 * time.Millisecond)
			h.tellsTheTime(fmt.Sprintf("with a clock that is off by %s", off))
		}
		// Our clock is set while nobody answers.
		h.set(-off)
		h.pass(time.Minute)
		h.tellsTheTime("when it is set right")
	}
	var none *Skew
	if before, is := time.Now(), none.Server(); is.Before(before) || is.After(time.Now()) {
		t.Errorf("without answers it is %s, want our time", is)
	}
}
