package eviction

import (
	"testing"
	"time"
)

const wrongClock = "The clock is wrong."

// A lock whose time is over by a clock that nobody believes holds all the same, and
// those who wait are told so. They go when the clock is right again.
func TestALockDoesNotEndByAClockThatIsNotBelieved(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a")
		w.allow(1)
		w.lock(&w.budget, lockedBy("dba", w.after(time.Minute)))
		w.change(func() { w.doubt, w.ahead = wrongClock, time.Hour })
		w.want(blue, pods...)
		expect(t, "refused", w.refused(blue), "uid-a: "+told("web", "dba", w.after(time.Minute))+". It does not end by itself now: The clock is wrong")
		w.pass(12 * time.Hour)
		w.wantRequests(t)

		w.change(func() { w.doubt, w.ahead = "", 0 })
		w.pass(safety)
		expect(t, "left", w.left())
	})
}

// What a lock says of its end counts by the clock that is believed: ours is an hour
// ahead.
func TestALockEndsByTheClockThatIsBelieved(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a")
		w.allow(1)
		w.change(func() {
			w.ahead = -time.Hour
			w.budget.CreationTimestamp.Time = w.after(-time.Hour)
		})
		w.lock(&w.budget, lockedBy("dba", w.after(time.Minute)))
		w.want(blue, pods...)
		w.pass(time.Hour + time.Minute - time.Second)
		w.wantRequests(t)
		w.pass(2 * time.Second)
		expect(t, "left", w.left())
	})
}
