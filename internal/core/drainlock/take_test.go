package drainlock_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

const (
	toBeLocked = "Locking"
	settling   = "Settling"
	allHeld    = "Held"
)

// TestLocksAreTakenInOrderAndConfirmed is how locks are taken: the mutex, one after the other, and the look.
func TestLocksAreTakenInOrderAndConfirmed(t *testing.T) {
	t.Parallel()
	run(t, taking)
	run(t, looking)
}

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
		"the mutex is taken first":                 {change(unasked).and(), "Locking; TakeMutex kernel/node-1"},
		"so are the locks":                         {change(unasked).and(mine), "Locking; WriteLock db"},
		"and given back the others are":            {change(unasked).and(both, after(3), exhausted("db")), "WaitingForBudget; RemoveLock web; again in 4m57s"},
		"it goes when there is nothing else to do": {change(unasked).and(exhausted("db")), "WaitingForBudget; RemoveLock a-forged; PodDisruptionBudget:StrayLockRemoved; again in 5m0s"},
		"a node that is away is none the worse":    {change(unasked).and(held, after(3)), "Held; RemoveLock a-forged; db! web!; NodeMaintenance:LocksHeld PodDisruptionBudget:StrayLockRemoved; again in 9m57s"},
		"the record ends without it":               {change(unasked).and(complete), "Releasing; Finish"},
	})
}

var mine = mutexOf("kernel/node-1", 0)

var taking = map[string]story{
	"the mutex comes first":                                                 {nil, "Locking; TakeMutex kernel/node-1"},
	"the mutex is free if nobody holds it":                                  {mutexOf("", -5).and(), "Locking; TakeMutex kernel/node-1"},
	"the mutex is another's, until it ends":                                 {mutexOf("disk/node-2", -20).and(busyNode), "Locking; again in 40s"},
	"the mutex ends after a minute":                                         {mutexOf("disk/node-2", -60).and(busyNode), "Locking; TakeMutex kernel/node-1"},
	"the mutex of a node without a record is free":                          {mutexOf("disk/node-2", 0).and(), "Locking; TakeMutex kernel/node-1"},
	"the mutex of a node whose maintenance is over is free":                 {mutexOf("disk/node-2", 0).and(busyNode, func(s *drainlock.Snapshot) { s.MutexRecord.Spec.Complete = true }), "Locking; TakeMutex kernel/node-1"},
	"the mutex of a node that needs nothing is free":                        {mutexOf("disk/node-2", 0).and(busyNode, func(s *drainlock.Snapshot) { s.MutexRecord.Spec.Budgets = nil }), "Locking; TakeMutex kernel/node-1"},
	"a node beside the mutex of one with other budgets takes its locks":     {mutexOf("disk/node-2", 0).and(apartNode), "Locking; WriteLock db"},
	"a node beside the mutex of one with other budgets takes all its locks": {mutexOf("disk/node-2", 0).and(apartNode, taken("db", 0)), "Locking; WriteLock web; db; again in 10m0s"},
	"the mutex of years to come is free":                                    {mutexOf("disk/node-2", 1e8).and(busyNode), "Locking; TakeMutex kernel/node-1"},
	"the mutex of a faster clock is not":                                    {mutexOf("disk/node-2", 100).and(busyNode), "Locking; again in 2m40s"},
	"the mutex that nobody can read is free":                                {mutexOf("disk", 0).and(busyNode), "Locking; TakeMutex kernel/node-1"},
	"the mutex is taken again when it is old":                               {mine.and(after(31)), "Locking; TakeMutex kernel/node-1"},
	"the mutex is ours whatever the maintenance":                            {mutexOf("disk/node-1", 0).and(), "Locking; WriteLock db"},
	"the first lock":                      {mine.and(), "Locking; WriteLock db"},
	"the second lock":                     {mine.and(taken("db", 0)), "Locking; WriteLock web; db; again in 10m0s"},
	"a lock by hand is no reason to skip": {mine.and(taken("web", 0)), "Locking; WriteLock db; web; again in 10m0s"},
	"whatever the order of the record": {mine.and(recordIs(func(r *v1alpha1.DrainRecord) {
		r.Spec.Budgets = []v1alpha1.BudgetReference{named("web"), named("db"), named("web")}
	})), "Locking; WriteLock db"},
	"a budget that does not exist is not needed": {mine.and(func(s *drainlock.Snapshot) { s.Budgets = s.Budgets[1:] }), "Locking; WriteLock web"},
	"an ended lock of another is written over":   {mine.and(lockedBy("alice", "db", -100, -1)), "Locking; WriteLock db"},
}

var looking = map[string]story{
	"all taken: the mutex is given":        {mine.and(both), "Settling; GiveMutex; db web; again in 2s"},
	"all taken: evictions are waited for":  {change(both).and(after(1)), "Settling; db web; again in 1s"},
	"a cache confirms nothing":             {change(both).and(after(2)), "Settling; db web; again in 9m58s"},
	"a look at the API server confirms":    {change(both).and(after(2), live), "Held; db! web!; NodeMaintenance:LocksHeld; again in 9m58s"},
	"a look that comes too early does not": {change(both).and(after(1.5), live), "Settling; db web; again in 500ms"},
	"an eviction of our own is waited for": {change(both).and(after(3), live, func(s *drainlock.Snapshot) {
		s.Busy = map[types.NamespacedName]bool{{Namespace: "shop", Name: "web"}: true}
	}), "Settling; db web; again in 2s"},
	"an eviction that landed after the lock":       {change(both).and(after(3), live, exhausted("web")), "WaitingForBudget; RemoveLock web; again in 4m57s"},
	"a lock taken just before somebody died":       {change(both).and(after(9.3), recordIs(func(r *v1alpha1.DrainRecord) { r.Status.Locks = r.Status.Locks[:1] }), live), "Settling; db web; again in 2.7s"},
	"a time that is still to come counts from now": {change(both).and(recordIs(func(r *v1alpha1.DrainRecord) { r.Status.Locks[0].AcquiredTime = stamped(1e8) })), "Settling; db web; again in 2s"},
	"locks that are recorded twice":                {change(both).and(noted("db", 1), noted("nothing", 1), after(2), live), "Held; db! web!; NodeMaintenance:LocksHeld; again in 9m58s"},
	"nothing is needed":                            {change(nothing).and(), "Held"},
	"nothing is needed, and the mutex is given":    {mine.and(nothing), "Held; GiveMutex"},
}

func nothing(s *drainlock.Snapshot) { s.Record.Spec.Budgets, s.Record.Spec.Pods = nil, nil }

// TestHeldLocksAreRenewedAndRegained is what becomes of locks that are there.
func TestHeldLocksAreRenewedAndRegained(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"held":                         {change(held).and(after(100)), "Held; db! web!; NodeMaintenance:LocksHeld; again in 8m20s"},
		"renewed at half of the time":  {change(held).and(after(600)), "Held; WriteLock db; db! web!; NodeMaintenance:LocksHeld"},
		"a new maintenance takes over": {change(held).and(recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.MaintenanceRef.Name = "disk" })), "Held; WriteLock db; db! web!; NodeMaintenance:LocksHeld; again in 10m0s"},
		"confirmed locks stay while a new one cannot be had": {change(held).and(after(100), recordIs(func(r *v1alpha1.DrainRecord) {
			r.Status.Locks = r.Status.Locks[:1]
			since := stamped(90)
			r.Status.WaitStartTime = &since
		}), lockedBy("alice", "web", 50, 160)), "WaitingForBudget; db!; again in 1m0s"},
		"the annotation was removed":                                    {change(held).and(after(100), annotation("db", "")), "Locking; TakeMutex kernel/node-1; web!; NodeMaintenance:LockLost; again in 8m20s"},
		"the lock has ended":                                            {change(held).and(after(1300), taken("web", 1000)), "Locking; TakeMutex kernel/node-1; web!; NodeMaintenance:LockLost; again in 5m0s"},
		"somebody else has it now":                                      {change(held).and(after(100), lockedBy("alice", "db", 50, 160)), "WaitingForBudget; web!; NodeMaintenance:LockLost; again in 1m0s"},
		"a lost lock is had again although its pods are down":           {change(held).and(after(100), annotation("db", ""), exhausted("db"), unready("db-0")), "Locking; TakeMutex kernel/node-1; web!; NodeMaintenance:LockLost; again in 8m20s"},
		"the budget was deleted":                                        {change(held).and(after(100), func(s *drainlock.Snapshot) { s.Budgets = s.Budgets[1:] }), "Held; web!; NodeMaintenance:LocksHeld; again in 8m20s"},
		"a lock that is not needed any more goes, even a confirmed one": {change(held).and(after(100), recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.Budgets = r.Spec.Budgets[1:] })), "Held; RemoveLock db; db web!; NodeMaintenance:LocksHeld; again in 8m20s"},
		"and so does one that nobody has recorded":                      {change(nothing).and(taken("db", 0)), "Held; RemoveLock db; PodDisruptionBudget:StrayLockRemoved"},
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
	run(t, map[string]story{
		"pods are ready":       {change(held).and(complete, after(100)), "Releasing; RemoveLock web; db web; again in 18m20s"},
		"one is not":           {change(held).and(complete, after(100), unready("db-0")), "Releasing; RemoveLock web; db web; again in 18m20s"},
		"none is":              {change(held).and(complete, after(700), unready("db-0"), unready("web-0")), "Releasing; db web; again in 8m20s"},
		"one is gone":          {change(held).and(complete, after(100), func(s *drainlock.Snapshot) { s.Pods = s.Pods[1:] }), "Releasing; RemoveLock web; db web; again in 18m20s"},
		"another has its name": {change(held).and(complete, after(100), unready("db-0"), podIs("db-0", func(p *corev1.Pod) { p.UID = "another" })), "Releasing; RemoveLock web; db web; again in 18m20s"},
		"one is terminal":      {change(held).and(complete, after(100), unready("db-0"), podIs("db-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })), "Releasing; RemoveLock web; db web; again in 18m20s"},
		"time is over for one that never gets ready": {change(held).and(complete, after(1200), unready("db-0"), unready("web-0")), "Releasing; RemoveLock web; db web; NodeMaintenance:LockRanOut"},
		"no lock is left":                              {change(complete).and(noted("db", 0)), "Releasing; Finish; NodeMaintenance:LocksReleased"},
		"there never was a lock":                       {change(complete).and(), "Releasing; Finish"},
		"the mutex goes before the record":             {change(complete).and(mutexOf("kernel/node-1", 0)), "Releasing; GiveMutex"},
		"a record on its way out is not deleted again": {change(complete).and(recordIs(func(r *v1alpha1.DrainRecord) { now := stamped(0); r.DeletionTimestamp = &now })), "Releasing"},
	})
}
