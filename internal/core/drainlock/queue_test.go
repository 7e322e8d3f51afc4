package drainlock_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

func waiting(node string, since float64, with ...func(*v1alpha1.DrainRecord)) *v1alpha1.DrainRecord {
	at := stamped(since)
	r := &v1alpha1.DrainRecord{Spec: v1alpha1.DrainRecordSpec{Budgets: []v1alpha1.BudgetReference{named("db")}}}
	r.Name, r.Status.WaitStartTime = node, &at
	for _, change := range with {
		change(r)
	}
	return r
}

func TestLongestWaiterIsFirst(t *testing.T) {
	t.Parallel()
	this := waiting("node-2", 100)
	for name, test := range map[string]struct {
		other *v1alpha1.DrainRecord
		want  bool
	}{
		"one that waits for longer":               {waiting("node-9", 99), true},
		"one that waits for as long, by its name": {waiting("node-1", 100), true},
		"not one whose name comes later":          {waiting("node-3", 100), false},
		"not one that waits for less time":        {waiting("node-1", 101), false},
		"not itself":                              {waiting("node-2", 50), false},
		"not one that does not wait":              {waiting("node-1", 50, func(r *v1alpha1.DrainRecord) { r.Status.WaitStartTime = nil }), false},
		"not one whose maintenance is over":       {waiting("node-1", 50, func(r *v1alpha1.DrainRecord) { r.Spec.Complete = true }), false},
		"not one that is back": {waiting("node-1", 50, func(r *v1alpha1.DrainRecord) {
			now := stamped(60)
			r.Status.Boots = &v1alpha1.RecordedBoots{ReturnedTime: &now}
		}), false},
		"not one that needs other budgets": {waiting("node-1", 50, func(r *v1alpha1.DrainRecord) { r.Spec.Budgets[0] = named("web") }), false},
		"one that needs others as well": {waiting("node-1", 50, func(r *v1alpha1.DrainRecord) {
			r.Spec.Budgets = append([]v1alpha1.BudgetReference{named("api")}, r.Spec.Budgets...)
		}), true},
	} {
		if got := drainlock.Precedes(test.other, this); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	begins := waiting("node-2", 0, func(r *v1alpha1.DrainRecord) { r.Status.WaitStartTime = nil })
	if !drainlock.Precedes(this, waiting("node-0", 0, func(r *v1alpha1.DrainRecord) { r.Status.WaitStartTime = nil })) || drainlock.Precedes(begins, this) {
		t.Error("one that has just begun to wait is not the last")
	}
}

func ahead(earlier int) change {
	return func(s *drainlock.Snapshot) { s.Ahead, s.Earlier = waiting("node-2", -100), earlier }
}

func TestTheQueue(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"who could go waits for who waits for longer": {ahead(1).and(), "WaitingForBudget; again in 1m0s"},
		"it is no lock timeout":                       {ahead(9).and(after(1000)), "WaitingForBudget; again in 1m0s"},
		"for no more than a minute":                   {ahead(1).and(recordIs(func(r *v1alpha1.DrainRecord) { since := stamped(-60); r.Status.YieldStartTime = &since })), "Locking; TakeMutex kernel/node-1"},
		"which does not begin in the future":          {ahead(1).and(recordIs(func(r *v1alpha1.DrainRecord) { since := stamped(3600); r.Status.YieldStartTime = &since })), "WaitingForBudget; again in 1m0s"},
		"who is back needs no mutex": {mutexOf("kernel/node-2", 0).and(func(s *drainlock.Snapshot) {
			busyNode(s)
			now := stamped(0)
			s.MutexRecord.Status.Boots = &v1alpha1.RecordedBoots{ReturnedTime: &now}
		}), "Locking; TakeMutex kernel/node-1"},
		"a place far behind is told roughly":  {ahead(11).and(), "WaitingForBudget; again in 1m0s"},
		"one very far behind not at all":      {ahead(3000).and(), "WaitingForBudget; again in 1m0s"},
		"who cannot go says on whom it waits": {ahead(2).and(lockedBy("alice", "db", 0, 60)), "WaitingForBudget; again in 1m0s"},
		"who has the mutex goes on":           {ahead(1).and(mutexOf("kernel/node-1", 0)), "Locking; WriteLock db"},
		"who has a lock goes on":              {ahead(1).and(taken("db", 0), noted("db", 0)), "Locking; TakeMutex kernel/node-1; db; again in 10m0s"},
	})
}

func TestContendersOfALock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		seen []change
		want bool
	}{
		"who can have all locks":              {nil, true},
		"also behind somebody":                {ahead(3).and(), true},
		"not who cannot have one":             {exhausted("web").and(), false},
		"not who has them":                    {change(held).and(), false},
		"not who has one, and goes on":        {taken("db", 0).and(noted("db", 0)), false},
		"not whose maintenance is over":       {change(complete).and(), false},
		"not whose locks cannot be written":   {[]change{func(s *drainlock.Snapshot) { s.Refused = refusedBudget("db") }}, false},
		"not who gives up what cannot be had": {exhausted("web").and(after(400)), false},
		"who could have what was not given up too": {[]change{recordIs(func(r *v1alpha1.DrainRecord) {
			r.Spec.Budgets = r.Spec.Budgets[:1]
			r.Status.GivenUp = []v1alpha1.GivenUpBudget{{BudgetReference: named("web"), Action: v1alpha1.LockTimeoutEvict}}
		})}, true},
	} {
		if got := drainlock.Contends(snapshot(test.seen...)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func refusedBudget(name string) map[types.UID]string {
	return map[types.UID]string{types.UID(name): "no"}
}
