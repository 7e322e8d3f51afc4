package eviction

import (
	"testing"
	"time"
)

// A lock whose time is over by a skewed clock holds all the same. The pods go when the clock
// is trusted again.
func TestSkewedClockEndsNoLock(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a")
		w.allow(1)
		w.lock(&w.budget, lockedBy("dba", w.after(time.Minute)))
		w.change(func() { w.skewed, w.ahead = true, time.Hour })
		w.want(blue, pods...)
		w.pass(12 * time.Hour)
		w.wantRequests(t)

		w.change(func() { w.skewed, w.ahead = false, 0 })
		w.pass(safety)
		expect(t, "left", w.left())
	})
}

// What a lock says of its end counts by the clock of the API server: ours is an hour ahead.
func TestLockEndsByTheCorrectedClock(t *testing.T) {
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
