package drainlock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

func skewed(s *drainlock.Snapshot) { s.ClockSkewed = true }

// While the clock is skewed nothing is promised, given up or lost because of the time.
// What was promised holds, and is prolonged.
func TestSkewedClockMovesNoLock(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"nothing is taken": {change(skewed).and(), "ClockSkewed"},
		"what was taken and not promised is given back":                                      {change(both).and(after(3), live, skewed), "ClockSkewed; RemoveLock web; again in 9m57s"},
		"what was promised holds, though its time seems to be over, and is prolonged":        {change(held).and(after(5000), skewed), "Held; WriteLock db; db! web!; NodeMaintenance:LocksHeld"},
		"the time to lock a budget seems to be over: nothing is given up":                    {exhausted("db").and(after(5000), skewed), "ClockSkewed"},
		"... nor is a pod deleted past it":                                                   {exhausted("db").and(after(5000), onTimeout(v1alpha1.LockTimeoutDelete), skewed), "ClockSkewed"},
		"the lock of an owner seems to have ended: it is left alone":                         {lockedBy("dba", "db", -90, 0).and(after(1), skewed), "ClockSkewed"},
		"the maintenance is over: a lock stays until its pods are ready, and goes with them": {change(held).and(complete, unready("db-0"), after(5000), skewed), "Releasing; RemoveLock web; db web"},
		"nothing is needed, whatever the clock":                                              {change(skewed).and(nothing), "Held"},
	})
}

// The time for which a node waits while the clock is skewed does not count, and what was
// written down of it is forgotten. The maintenance shows what its record says of the clock.
func TestTimeoutDoesNotCountWhileTheClockIsSkewed(t *testing.T) {
	t.Parallel()
	s := snapshot(exhausted("db").and(after(299), skewed)...)
	if d := drainlock.Decide(s); d.Status == nil || d.Status.TimeoutStartTime != nil || d.Status.WaitStartTime == nil {
		t.Fatalf("status %+v, want it to wait and no time to count", d.Status)
	} else {
		s.Record.Status = *d.Status
	}
	var blockers []v1alpha1.BlockerType
	for _, b := range drainlock.Blockers(drainlock.Facts{Now: s.Now, Record: s.Record, Pods: s.Pods, Budgets: s.Budgets}) {
		blockers = append(blockers, b.Type)
	}
	if diff := cmp.Diff([]v1alpha1.BlockerType{v1alpha1.BlockerPDBExhausted, v1alpha1.BlockerClockSkewed}, blockers); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	s.Now, s.ClockSkewed = at(5000), false
	d := drainlock.Decide(s)
	if began := d.Status.TimeoutStartTime; began == nil || !began.Time.Equal(at(5000)) || len(d.Status.GivenUp) > 0 {
		t.Errorf("status %+v, want the time to count from now on and nothing to be given up", d.Status)
	}
}

// No lock is removed because it seems to have ended. One of a node without a record is no
// question of the time.
func TestSkewedClockRemovesNoLock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lock   change
		remove bool
	}{
		"its owner's":                     {lock: lockedBy("alice", "db", -90, 0)},
		"one that nobody can read":        {lock: annotation("db", "mine!")},
		"a drain's without a DrainRecord": {lock: lockedBy(ours, "db", -90, 0), remove: true},
	} {
		if k := drainlock.Keep(snapshot(test.lock).Budgets[0], "", skew.Earliest(began, true), 0); k.Remove != test.remove || k.Stray != test.remove {
			t.Errorf("%s: removed %t, want %t", name, k.Remove, test.remove)
		}
	}
}
