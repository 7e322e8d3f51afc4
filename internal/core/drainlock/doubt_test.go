package drainlock_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

const (
	wrongClock = "The manager's clock is wrong: set it."
	doubtful   = "False/ClockSkewed: To be locked: shop/db, shop/web. No lock is taken or given up now. " + wrongClock
)

// doubted is a clock that nobody believes.
func doubted(s *drainlock.Snapshot) { s.Doubt = wrongClock }

// While the clock is not believed nothing is promised, given up or lost because of the
// time. What was promised holds, and is prolonged.
func TestADoubtfulClock(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"nothing is taken": {seen: change(doubted).and(), says: doubtful},
		"what was taken and not promised is given back": {
			seen: change(both).and(after(3), doubted), does: "RemoveLock web", says: doubtful, again: 597e9,
		},
		"nothing is promised": {
			seen: change(both).and(after(3), live, doubted), does: "RemoveLock web", says: doubtful, again: 597e9,
		},
		"what was promised holds": {
			seen: change(held).and(after(3), doubted), does: "", locks: "db! web!", says: allHeld, again: 597e9,
			tells: []string{"NodeMaintenance Normal LocksHeld: For the pods that stay on node node-1 these PodDisruptionBudgets are locked: shop/db, shop/web."},
		},
		"... though its time seems to be over, and is prolonged": {
			seen: change(held).and(after(5000), doubted), does: "WriteLock db", locks: "db! web!", says: allHeld,
			tells: []string{"NodeMaintenance Normal LocksHeld: For the pods that stay on node node-1 these PodDisruptionBudgets are locked: shop/db, shop/web."},
		},
		"the time to lock a budget seems to be over: nothing is given up": {
			seen: exhausted("db").and(after(5000), doubted), says: doubtful,
		},
		"... nor is anybody deleted past it": {
			seen: exhausted("db").and(after(5000), onTimeout(v1alpha1.LockTimeoutDelete), doubted), says: doubtful,
		},
		"somebody's lock seems to have ended: it is left alone": {
			seen: lockedBy("dba", "db", -90, 0).and(after(1), doubted), says: doubtful,
		},
		"the maintenance is over: a lock that seems to have ended stays until its pods are ready": {
			seen: change(held).and(complete, unready("db-0"), unready("web-0"), after(5000), doubted), locks: "db web",
			says: "False/Releasing: The maintenance is over. Locks are kept until these pods are ready: shop/db-0, shop/web-0. Until then no lock ends. " + wrongClock,
		},
		"... and goes with them": {
			seen: change(held).and(complete, unready("db-0"), after(5000), doubted), does: "RemoveLock web", locks: "db web",
			says: "False/Releasing: The maintenance is over. Locks are kept until these pods are ready: shop/db-0. Until then no lock ends. " + wrongClock,
		},
		"nothing is needed": {seen: change(doubted).and(nothing), says: "True/Held: No PodDisruptionBudget is to be locked."},
	})
}

// The time for which a node waits while the clock is not believed does not count, and
// what was written down of it is forgotten.
func TestATimeoutDoesNotCountWhileTheClockIsDoubtful(t *testing.T) {
	t.Parallel()
	s := snapshot(exhausted("db").and(after(299), doubted)...)
	if d := drainlock.Decide(s); d.Status == nil || d.Status.TimeoutStartTime != nil || d.Status.WaitStartTime == nil {
		t.Fatalf("status %+v, want it to wait and no time to count", d.Status)
	} else {
		s.Record.Status = *d.Status
	}
	s.Now, s.Doubt = at(5000), ""
	d := drainlock.Decide(s)
	if began := d.Status.TimeoutStartTime; began == nil || !began.Time.Equal(at(5000)) || len(d.Status.GivenUp) > 0 {
		t.Errorf("status %+v, want the time to count from now on and nothing to be given up", d.Status)
	}
}

// The maintenance shows what its record says of the clock, beside what is in the way of
// single budgets.
func TestADoubtfulClockBlocks(t *testing.T) {
	t.Parallel()
	s := snapshot(exhausted("db").and(doubted)...)
	s.Record.Status = *drainlock.Decide(s).Status
	var got []string
	for _, b := range drainlock.Blockers(drainlock.Facts{Now: s.Now, Record: s.Record, Pods: s.Pods, Budgets: s.Budgets}) {
		got = append(got, string(b.Type)+" "+b.Object.Kind+": "+b.Message)
	}
	want := []string{"PDBExhausted PodDisruptionBudget: " + needsOne, "ClockSkewed DrainRecord: " + strings.TrimPrefix(doubtful, "False/ClockSkewed: ")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
}

// No lock is removed because it seems to have ended by such a clock. One of a node
// without a record is no question of the time.
func TestALockThatSeemsToHaveEndedStays(t *testing.T) {
	t.Parallel()
	const kept = "PodDisruptionBudget Warning LockKept: The lock of PodDisruptionBudget shop/db seems to have ended, and stays. " + wrongClock
	for name, test := range map[string]struct {
		lock   change
		remove bool
		tells  []string
	}{
		"its owner's":                      {lock: lockedBy("alice", "db", -90, 0), tells: []string{kept}},
		"one that nobody can read":         {lock: annotation("db", "mine!"), tells: []string{kept}},
		"a node's without a record, ended": {lock: lockedBy(ours, "db", -90, 0), tells: []string{kept}},
		"a node's without a record": {lock: lockedBy(ours, "db", 0, 90), remove: true, tells: []string{
			"PodDisruptionBudget Warning StrayLockRemoved: The lock of PodDisruptionBudget shop/db was removed, because node node-1 has no DrainRecord: PodDisruptionBudget shop/db is locked by nodemaintenance/kernel/node-1 until 2026-11-21T08:01:30Z.",
		}},
		"one that goes on": {lock: lockedBy("alice", "db", 0, 90)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := snapshot(test.lock).Budgets[0]
			k := drainlock.Keep(b, "", began, 0).Doubted(b, wrongClock)
			if k.Remove != test.remove {
				t.Errorf("remove %t, want %t", k.Remove, test.remove)
			}
			if diff := cmp.Diff(test.tells, told(k.Events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
