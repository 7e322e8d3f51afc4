package drainlock_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

const (
	toBeLocked = "False/Locking"
	settling   = "False/Settling"
	allHeld    = "True/Held"
	lostDB     = "NodeMaintenance Warning LockLost"
)

// TestLocksAreTakenInOrderAndConfirmed is how locks are taken: the mutex, one after the other, and the look.
func TestLocksAreTakenInOrderAndConfirmed(t *testing.T) {
	t.Parallel()
	run(t, taking)
	run(t, looking)
}

// forgedDB is told of a lock that the record does not ask for.
const forgedDB = "PodDisruptionBudget Warning StrayLockRemoved"

// unasked is a budget that comes before all others, and whose owner has made up a
// lock of this node.
func unasked(s *drainlock.Snapshot) {
	s.Budgets = append(s.Budgets, newBudget("a-forged"))
	taken("a-forged", 0)(s)
}

// TestForgedLockIsRemovedLast has nobody wait for a lock that the record does not ask for.
func TestForgedLockIsRemovedLast(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"the mutex is taken first":      {seen: change(unasked).and(), does: `TakeMutex "kernel/node-1"`, says: toBeLocked},
		"so are the locks":              {seen: change(unasked).and(mine), does: "WriteLock db", says: toBeLocked},
		"and given back the others are": {seen: change(unasked).and(both, after(3), exhausted("db")), does: "RemoveLock web", says: waitingForBudget, again: 297 * time.Second},
		"it goes when there is nothing else to do": {
			seen: change(unasked).and(exhausted("db")), does: "RemoveLock a-forged", says: waitingForBudget, again: 300 * time.Second, tells: []string{forgedDB},
		},
		"a node that is away is none the worse": {
			seen: change(unasked).and(held, after(3)), does: "RemoveLock a-forged", locks: "db! web!", says: allHeld, again: 597 * time.Second,
			tells: []string{heldEvent, forgedDB},
		},
		"the record ends without it": {seen: change(unasked).and(complete), does: "Finish", says: releasing},
	})
}

var mine = mutexOf("kernel/node-1", 0)

var taking = map[string]story{
	"the mutex comes first": {does: `TakeMutex "kernel/node-1"`, says: toBeLocked},
	"the mutex is free if nobody holds it": {
		seen: mutexOf("", -5).and(), does: `TakeMutex "kernel/node-1"`, says: toBeLocked,
	},
	"the mutex is another's, until it ends": {
		seen: mutexOf("disk/node-2", -20).and(busyNode), again: 40 * time.Second,
		says: toBeLocked,
	},
	"the mutex ends after a minute": {
		seen: mutexOf("disk/node-2", -60).and(busyNode), does: `TakeMutex "kernel/node-1"`, says: toBeLocked,
	},
	"the mutex of a node without a record is free": {
		seen: mutexOf("disk/node-2", 0).and(), does: `TakeMutex "kernel/node-1"`, says: toBeLocked,
	},
	"the mutex of a node whose maintenance is over is free": {
		seen: mutexOf("disk/node-2", 0).and(busyNode, func(s *drainlock.Snapshot) { s.MutexRecord.Spec.Complete = true }),
		does: `TakeMutex "kernel/node-1"`, says: toBeLocked,
	},
	"the mutex of a node that needs nothing is free": {
		seen: mutexOf("disk/node-2", 0).and(busyNode, func(s *drainlock.Snapshot) { s.MutexRecord.Spec.Budgets = nil }),
		does: `TakeMutex "kernel/node-1"`, says: toBeLocked,
	},
	"a node beside the mutex of one with other budgets takes its locks": {
		seen: mutexOf("disk/node-2", 0).and(apartNode), does: "WriteLock db", says: toBeLocked,
	},
	"a node beside the mutex of one with other budgets takes all its locks": {
		seen: mutexOf("disk/node-2", 0).and(apartNode, taken("db", 0)), does: "WriteLock web", locks: "db", says: toBeLocked, again: 10 * time.Minute,
	},
	"the mutex of years to come is free": {
		seen: mutexOf("disk/node-2", 1e8).and(busyNode), does: `TakeMutex "kernel/node-1"`, says: toBeLocked,
	},
	"the mutex of a faster clock is not": {
		seen: mutexOf("disk/node-2", 100).and(busyNode), again: 160 * time.Second, says: toBeLocked,
	},
	"the mutex that nobody can read is free": {
		seen: mutexOf("disk", 0).and(busyNode), does: `TakeMutex "kernel/node-1"`, says: toBeLocked,
	},
	"the mutex is taken again when it is old": {
		seen: mine.and(after(31)), does: `TakeMutex "kernel/node-1"`, says: toBeLocked,
	},
	"the mutex is ours whatever the maintenance": {
		seen: mutexOf("disk/node-1", 0).and(), does: "WriteLock db", says: toBeLocked,
	},
	"the first lock":                      {seen: mine.and(), does: "WriteLock db", says: toBeLocked},
	"the second lock":                     {seen: mine.and(taken("db", 0)), does: "WriteLock web", locks: "db", says: toBeLocked, again: 10 * time.Minute},
	"a lock by hand is no reason to skip": {seen: mine.and(taken("web", 0)), does: "WriteLock db", locks: "web", says: toBeLocked, again: 10 * time.Minute},
	"whatever the order of the record": {
		seen: mine.and(recordIs(func(r *v1alpha1.DrainRecord) {
			r.Spec.Budgets = []v1alpha1.BudgetReference{named("web"), named("db"), named("web")}
		})), does: "WriteLock db", says: toBeLocked,
	},
	"a budget that does not exist is not needed": {
		seen: mine.and(func(s *drainlock.Snapshot) { s.Budgets = s.Budgets[1:] }), does: "WriteLock web", says: toBeLocked,
	},
	"an ended lock of another is written over": {
		seen: mine.and(lockedBy("alice", "db", -100, -1)), does: "WriteLock db", says: toBeLocked,
	},
}

// looking is what follows when all locks are taken.
var looking = map[string]story{
	"all taken: the mutex is given": {
		seen: mine.and(both), does: `GiveMutex ""`, locks: "db web", says: settling, again: 2 * time.Second,
	},
	"all taken: evictions are waited for":  {seen: change(both).and(after(1)), locks: "db web", says: settling, again: time.Second},
	"a cache confirms nothing":             {seen: change(both).and(after(2)), locks: "db web", says: settling, again: 1198*time.Second - 600*time.Second},
	"a look at the API server confirms":    {seen: change(both).and(after(2), live), locks: "db! web!", says: allHeld, again: 598 * time.Second, tells: []string{heldEvent}},
	"a look that comes too early does not": {seen: change(both).and(after(1.5), live), locks: "db web", says: settling, again: time.Second / 2},
	"an eviction of our own is waited for": {
		seen: change(both).and(after(3), live, func(s *drainlock.Snapshot) {
			s.Busy = map[types.NamespacedName]bool{{Namespace: "shop", Name: "web"}: true}
		}), locks: "db web", says: settling, again: 2 * time.Second,
	},
	"an eviction that landed after the lock": {
		seen: change(both).and(after(3), live, exhausted("web")), does: "RemoveLock web",
		says:  waitingForBudget,
		again: 297 * time.Second,
	},
	"a lock taken just before somebody died": {
		seen:  change(both).and(after(9.3), recordIs(func(r *v1alpha1.DrainRecord) { r.Status.Locks = r.Status.Locks[:1] }), live),
		locks: "db web", says: settling, again: 2700 * time.Millisecond,
	},
	"a time that is still to come counts from now": {
		seen:  change(both).and(recordIs(func(r *v1alpha1.DrainRecord) { r.Status.Locks[0].AcquiredTime = stamped(1e8) })),
		locks: "db web", says: settling, again: 2 * time.Second,
	},
	"locks that are recorded twice": {
		seen: change(both).and(noted("db", 1), noted("nothing", 1), after(2), live), locks: "db! web!", says: allHeld, again: 598 * time.Second, tells: []string{heldEvent},
	},
	"nothing is needed": {
		seen: change(nothing).and(), says: allHeld,
	},
	"nothing is needed, and the mutex is given": {
		seen: mine.and(nothing), does: `GiveMutex ""`, says: allHeld,
	},
}

const heldEvent = "NodeMaintenance Normal LocksHeld"

func nothing(s *drainlock.Snapshot) { s.Record.Spec.Budgets, s.Record.Spec.Pods = nil, nil }

// TestHeldLocksAreRenewedAndRegained is what becomes of locks that are there.
func TestHeldLocksAreRenewedAndRegained(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"held": {seen: change(held).and(after(100)), locks: "db! web!", says: allHeld, again: 500 * time.Second, tells: []string{heldEvent}},
		"renewed at half of the time": {
			seen: change(held).and(after(600)), does: "WriteLock db", locks: "db! web!", says: allHeld, tells: []string{heldEvent},
		},
		"a new maintenance takes over": {
			seen: change(held).and(recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.MaintenanceRef.Name = "disk" })),
			does: "WriteLock db", locks: "db! web!", says: allHeld, tells: []string{heldEvent}, again: 10 * time.Minute,
		},
		"confirmed locks stay while a new one cannot be had": {
			seen: change(held).and(after(100), recordIs(func(r *v1alpha1.DrainRecord) {
				r.Status.Locks = r.Status.Locks[:1]
				since := stamped(90)
				r.Status.WaitStartTime = &since
			}), lockedBy("alice", "web", 50, 160)),
			locks: "db!", again: time.Minute,
			says: waitingForBudget,
		},
		"the annotation was removed": {
			seen: change(held).and(after(100), annotation("db", "")), does: `TakeMutex "kernel/node-1"`, locks: "web!", says: toBeLocked,
			tells: []string{lostDB}, again: 500 * time.Second,
		},
		"the lock has ended": {
			seen: change(held).and(after(1300), taken("web", 1000)), does: `TakeMutex "kernel/node-1"`, locks: "web!", says: toBeLocked,
			tells: []string{lostDB}, again: 300 * time.Second,
		},
		"somebody else has it now": {
			seen: change(held).and(after(100), lockedBy("alice", "db", 50, 160)), locks: "web!", again: time.Minute,
			says:  waitingForBudget,
			tells: []string{lostDB},
		},
		"a lost lock is had again although its pods are down": {
			seen: change(held).and(after(100), annotation("db", ""), exhausted("db"), unready("db-0")), does: `TakeMutex "kernel/node-1"`,
			locks: "web!", says: toBeLocked, tells: []string{lostDB}, again: 500 * time.Second,
		},
		"the budget was deleted": {
			seen:  change(held).and(after(100), func(s *drainlock.Snapshot) { s.Budgets = s.Budgets[1:] }),
			locks: "web!", says: allHeld, again: 500 * time.Second,
			tells: []string{heldEvent},
		},
		"a lock that is not needed any more goes, even a confirmed one": {
			seen: change(held).and(after(100), recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.Budgets = r.Spec.Budgets[1:] })),
			does: "RemoveLock db", locks: "db web!", says: allHeld, again: 500 * time.Second,
			tells: []string{heldEvent},
		},
		"and so does one that nobody has recorded": {
			seen: change(nothing).and(taken("db", 0)), does: "RemoveLock db", says: allHeld,
			tells: []string{forgedDB},
		},
	})
}

func annotation(name, text string) change {
	return budgetIs(name, func(b *policyv1.PodDisruptionBudget) {
		b.Annotations = nil
		if text != "" {
			b.Annotations = map[string]string{v1alpha1.LockAnnotation: text}
		}
	})
}

// TestLocksAreReleasedWhenPodsAreReady is what happens after the maintenance.
func TestLocksAreReleasedWhenPodsAreReady(t *testing.T) {
	t.Parallel()
	released := []string{"NodeMaintenance Normal LocksReleased"}
	run(t, map[string]story{
		"pods are ready": {seen: change(held).and(complete, after(100)), does: "RemoveLock web", locks: "db web", says: releasing, again: 1100 * time.Second},
		"one is not": {
			seen: change(held).and(complete, after(100), unready("db-0")), does: "RemoveLock web", locks: "db web", again: 1100 * time.Second,
			says: releasing,
		},
		"none is": {
			seen: change(held).and(complete, after(700), unready("db-0"), unready("web-0")), locks: "db web", again: 500 * time.Second,
			says: releasing,
		},
		"one is gone": {seen: change(held).and(complete, after(100), func(s *drainlock.Snapshot) { s.Pods = s.Pods[1:] }), does: "RemoveLock web", locks: "db web", says: releasing, again: 1100 * time.Second},
		"another has its name": {
			seen: change(held).and(complete, after(100), unready("db-0"), podIs("db-0", func(p *corev1.Pod) { p.UID = "another" })),
			does: "RemoveLock web", locks: "db web", says: releasing, again: 1100 * time.Second,
		},
		"one is terminal": {
			seen: change(held).and(complete, after(100), unready("db-0"), podIs("db-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })),
			does: "RemoveLock web", locks: "db web", says: releasing, again: 1100 * time.Second,
		},
		"time is over for one that never gets ready": {
			seen: change(held).and(complete, after(1200), unready("db-0"), unready("web-0")), does: "RemoveLock web", locks: "db web",
			says:  releasing,
			tells: []string{"NodeMaintenance Warning LockRanOut"},
		},
		"no lock is left":        {seen: change(complete).and(noted("db", 0)), does: "Finish", says: releasing, tells: released},
		"there never was a lock": {seen: change(complete).and(), does: "Finish", says: releasing},
		"the mutex goes before the record": {
			seen: change(complete).and(mutexOf("kernel/node-1", 0)), does: `GiveMutex ""`, says: releasing,
		},
		"a record on its way out is not deleted again": {
			seen: change(complete).and(recordIs(func(r *v1alpha1.DrainRecord) { now := stamped(0); r.DeletionTimestamp = &now })), says: releasing,
		},
	})
}
