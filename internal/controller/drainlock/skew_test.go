package drainlock

import (
	"testing"
	"time"
)

// While the clock is skewed a lock that seems to have ended stays. It is looked at again
// when the clock is trusted, and goes.
func TestKeeperWaitsWhileTheClockIsSkewed(t *testing.T) {
	t.Parallel()
	locked := lockedBy(aBudget("web", 1), "dba", time.Hour)
	w := newWorld(t, locked, aBudget("free", 1))
	w.clock.Step(2 * time.Hour)
	k := w.keeper()
	for _, w.skewed = range []bool{true, true, false} {
		_, err := w.keep(k, locked)
		w.must(err)
		if stored, _ := read(w, locked); len(stored.Annotations) > 0 != w.skewed {
			t.Errorf("locks %v with a clock that is skewed: %t", stored.Annotations, w.skewed)
		}
	}
}

// A node gets no locks while the clock is skewed, and gets them afterwards, when it is
// looked at again.
func TestNodeGetsNoLocksWhileTheClockIsSkewed(t *testing.T) {
	t.Parallel()
	p := newPlay(t, -1, aRecord("one", "db"), aRecord("two", "db"))
	p.skewed = true
	p.restart()
	for range 20 {
		p.step()
		p.clock.Step(time.Minute)
	}
	for _, r := range p.records() {
		if said := r.Status.Conditions[0]; p.held(r.Name) || len(r.Status.Locks)+len(r.Status.GivenUp) > 0 || said.Reason != "ClockSkewed" {
			t.Errorf("node %s has %+v", r.Name, r.Status)
		}
	}
	p.skewed = false
	p.until("a node holds its locks", func() bool { return p.held("one") || p.held("two") })
}
