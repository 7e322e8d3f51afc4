package drainlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

const (
	byAlice   = "PodDisruptionBudget shop/db is locked by alice until 2026-11-21T08:01:00Z."
	timedOut  = "NodeMaintenance Warning LockTimedOut: PodDisruptionBudget shop/db could not be locked within 5m0s, so its pods that stay on node node-1 "
	rethought = "False/Locking: A PodDisruptionBudget was given up, and spec does not say yet what is needed without it."
	needsOne  = "PodDisruptionBudget shop/db has to allow 1 disruption for the pods that stay, and allows 0."
)

// TestWait is what happens while a lock cannot be had, and when it takes too long.
func TestWait(t *testing.T) {
	t.Parallel()
	run(t, waits)
}

var (
	alice = lockedBy("alice", "db", 0, 60)
	// givenUp has been, and its pods are to be deleted.
	givenUp = recordIs(func(r *v1alpha1.DrainRecord) {
		r.Spec.InPlace.OnLockTimeout = v1alpha1.LockTimeoutDelete
		r.Spec.Budgets = r.Spec.Budgets[1:]
		r.Status.GivenUp = []v1alpha1.GivenUpBudget{{BudgetReference: named("db"), Action: v1alpha1.LockTimeoutDelete, Message: needsOne, PodUIDs: []types.UID{"db-0"}}}
	})
)

// elsewhere is the turn of another node, for 20 minutes.
var elsewhere, elsewhereWeb = lockedBy("nodemaintenance/kernel/node-2", "db", 0, 1200), lockedBy("nodemaintenance/kernel/node-2", "web", 0, 1200)

const byNode2 = "PodDisruptionBudget shop/db is locked by nodemaintenance/kernel/node-2 until 2026-11-21T08:20:00Z."

// givenUpWhileLocked has given up db to somebody who had locked it, and still waits for web.
var givenUpWhileLocked = recordIs(func(r *v1alpha1.DrainRecord) {
	r.Spec.Budgets = r.Spec.Budgets[1:]
	r.Status.TimeoutStartTime = nil
	r.Status.GivenUp = []v1alpha1.GivenUpBudget{{BudgetReference: named("db"), Action: v1alpha1.LockTimeoutEvict, Message: byAlice, Locked: true, PodUIDs: []types.UID{"db-0"}}}
})

var waits = map[string]story{
	"the mutex is not taken":    {seen: alice.and(), says: "False/WaitingForBudget: " + byAlice, again: time.Minute},
	"the mutex is given":        {seen: alice.and(mutexOf("kernel/node-1", 0)), does: `GiveMutex ""`, says: "False/WaitingForBudget: " + byAlice, again: time.Minute},
	"what was taken goes first": {seen: change(both).and(alice, mutexOf("kernel/node-1", 0)), does: "RemoveLock web", says: "False/WaitingForBudget: " + byAlice, again: time.Minute, tells: []string{lostDB + strings.TrimSuffix(byAlice, ".") + "."}},
	"several are in the way": {
		seen: alice.and(exhausted("web")), again: time.Minute,
		says: "False/WaitingForBudget: " + byAlice + " Neither can be locked: shop/web.",
	},
	"there is no time limit for Wait": {seen: exhausted("db").and(after(1e5), onTimeout(v1alpha1.LockTimeoutWait)), says: "False/WaitingForBudget: " + needsOne},
	"nor for what nobody knows":       {seen: exhausted("db").and(after(1e5), onTimeout("Whatever")), says: "False/WaitingForBudget: " + needsOne},
	"the time limit of Evict": {
		seen: exhausted("db").and(after(300)), locks: "-db Evict", says: rethought,
		tells: []string{timedOut + "are drained as if they had no label ebbtide.dev/on-upgrade: " + needsOne},
	},
	"the time limit is 300 s unless somebody says otherwise": {
		seen: exhausted("db").and(after(299), onTimeout(""), recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.InPlace.LockTimeoutSeconds = 0 })),
		says: "False/WaitingForBudget: " + needsOne, again: time.Second,
	},
	"the time limit of Delete": {
		seen: exhausted("db").and(after(300), onTimeout(v1alpha1.LockTimeoutDelete)), does: "DeletePod db-0", locks: "-db Delete", says: rethought,
		tells: []string{timedOut + "are deleted past it: " + needsOne, deletedOn("Pod"), deletedOn("NodeMaintenance")},
	},
	"nothing is held meanwhile": {
		seen: change(both).and(after(300), exhausted("db")), does: "RemoveLock web", locks: "-db Evict", says: rethought,
		tells: []string{timedOut + "are drained as if they had no label ebbtide.dev/on-upgrade: " + needsOne},
	},
	"a promise is kept all the same": {
		seen: change(both).and(taken("web", 100), after(300), exhausted("db"), recordIs(func(r *v1alpha1.DrainRecord) {
			confirmed := stamped(2)
			r.Status.Locks[1].ConfirmedTime = &confirmed
		})),
		does: "RemoveLock db", locks: "web! -db Evict", says: rethought, again: 400 * time.Second,
		tells: []string{timedOut + "are drained as if they had no label ebbtide.dev/on-upgrade: " + needsOne},
	},
	"then the others are locked": {seen: givenUp.and(func(s *drainlock.Snapshot) { s.Pods = s.Pods[1:] }), does: `TakeMutex "kernel/node-1"`, locks: "-db Delete", says: "False/Locking: To be locked: shop/web."},
	"the pod is deleted last":    {seen: givenUp.and(exhausted("web")), does: "DeletePod db-0", locks: "-db Delete", says: "False/WaitingForBudget: " + strings.ReplaceAll(needsOne, "db", "web"), again: 5 * time.Minute, tells: []string{deletedOn("Pod"), deletedOn("NodeMaintenance")}},
	"but no other of its name": {
		seen:  givenUp.and(exhausted("web"), podIs("db-0", func(p *corev1.Pod) { p.UID = "another" })),
		locks: "-db Delete", says: "False/WaitingForBudget: " + strings.ReplaceAll(needsOne, "db", "web"), again: 5 * time.Minute,
	},
	"nor one that somebody has made an ordinary one": {
		seen:  givenUp.and(exhausted("web"), podIs("db-0", func(p *corev1.Pod) { delete(p.Labels, v1alpha1.OnUpgradeLabel) })),
		locks: "-db Delete", says: "False/WaitingForBudget: " + strings.ReplaceAll(needsOne, "db", "web"), again: 5 * time.Minute,
	},
	"nor one that is to be skipped by now": {
		seen:  givenUp.and(exhausted("web"), podIs("db-0", func(p *corev1.Pod) { p.Labels[v1alpha1.DrainLabel] = "skip" })),
		locks: "-db Delete", says: "False/WaitingForBudget: " + strings.ReplaceAll(needsOne, "db", "web"), again: 5 * time.Minute,
	},
	"nor one that is terminating": {
		seen:  givenUp.and(exhausted("web"), podIs("db-0", func(p *corev1.Pod) { now := stamped(0); p.DeletionTimestamp = &now })),
		locks: "-db Delete", says: "False/WaitingForBudget: " + strings.ReplaceAll(needsOne, "db", "web"), again: 5 * time.Minute,
	},
	"nor for another maintenance, which must not": {
		seen:  givenUp.and(exhausted("web"), onTimeout(v1alpha1.LockTimeoutEvict)),
		locks: "-db Delete", says: "False/WaitingForBudget: " + strings.ReplaceAll(needsOne, "db", "web"), again: 5 * time.Minute,
	},
	"nobody gives up while it is another node's turn": {
		seen: elsewhere.and(after(400)), says: "False/WaitingForBudget: " + byNode2, again: 800 * time.Second,
	},
	"the time begins when it is not any more": {
		seen: exhausted("db").and(after(400), recordIs(func(r *v1alpha1.DrainRecord) { r.Status.TimeoutStartTime = nil })),
		says: "False/WaitingForBudget: " + needsOne, again: 300 * time.Second,
	},
	"nor while its owner's lock keeps the pods from leaving": {
		seen: lockedBy("alice", "db", 0, 1200).and(after(300)), says: "False/WaitingForBudget: " + strings.Replace(byAlice, "08:01", "08:20", 1), again: 900 * time.Second,
	},
	"when that is gone the time is over": {
		seen: exhausted("db").and(after(1200)), locks: "-db Evict", says: rethought,
		tells: []string{timedOut + "are drained as if they had no label ebbtide.dev/on-upgrade: " + needsOne},
	},
	"who may delete need not wait for it": {
		seen: lockedBy("alice", "db", 0, 1200).and(after(300), onTimeout(v1alpha1.LockTimeoutDelete)), does: "DeletePod db-0", locks: "-db Delete locked", says: rethought,
		tells: []string{
			timedOut + "are deleted past it: " + strings.Replace(byAlice, "08:01", "08:20", 1),
			strings.Replace(deletedOn("Pod"), needsOne, strings.Replace(byAlice, "08:01", "08:20", 1), 1),
			strings.Replace(deletedOn("NodeMaintenance"), needsOne, strings.Replace(byAlice, "08:01", "08:20", 1), 1),
		},
	},
	"what another node has locked is not given up with it": {
		seen: elsewhere.and(after(300), exhausted("web")), locks: "-web Evict", says: rethought,
		tells: []string{strings.Replace(timedOut, "db", "web", 1) + "are drained as if they had no label ebbtide.dev/on-upgrade: " + strings.ReplaceAll(needsOne, "db", "web")},
	},
	"nor are its pods deleted": {
		seen: elsewhere.and(after(300), exhausted("web"), onTimeout(v1alpha1.LockTimeoutDelete)), does: "DeletePod web-0", locks: "-web Delete", says: rethought,
		tells: []string{
			strings.Replace(timedOut, "db", "web", 1) + "are deleted past it: " + strings.ReplaceAll(needsOne, "db", "web"),
			strings.ReplaceAll(deletedOn("Pod"), "db", "web"), strings.ReplaceAll(deletedOn("NodeMaintenance"), "db", "web"),
		},
	},
	"who is still there stays after all when the lock is gone": {
		seen: givenUpWhileLocked.and(after(310), elsewhereWeb), says: "False/WaitingForBudget: " + strings.ReplaceAll(byNode2, "shop/db", "shop/web"), again: 890 * time.Second,
		tells: []string{"NodeMaintenance Normal PodsStayAfterAll: PodDisruptionBudget shop/db was given up because it was locked, and is free before its pods have left: they stay on node node-1 after all."},
	},
	"not while it is locked": {
		seen: givenUpWhileLocked.and(after(310), elsewhereWeb, lockedBy("alice", "db", 0, 1200)), locks: "-db Evict locked",
		says: "False/WaitingForBudget: " + strings.ReplaceAll(byNode2, "shop/db", "shop/web"), again: 890 * time.Second,
	},
	"not when they are leaving": {
		seen:  givenUpWhileLocked.and(after(310), elsewhereWeb, podIs("db-0", func(p *corev1.Pod) { now := stamped(0); p.DeletionTimestamp = &now })),
		locks: "-db Evict locked", says: "False/WaitingForBudget: " + strings.ReplaceAll(byNode2, "shop/db", "shop/web"), again: 890 * time.Second,
	},
	"not while it allows too little": {
		seen:  givenUpWhileLocked.and(after(310), elsewhereWeb, exhausted("db")),
		locks: "-db Evict locked", says: "False/WaitingForBudget: " + strings.ReplaceAll(byNode2, "shop/db", "shop/web"), again: 890 * time.Second,
	},
	"not before the spec knows": {
		seen:  givenUpWhileLocked.and(after(310), elsewhereWeb, recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.Budgets = []v1alpha1.BudgetReference{named("db"), named("web")} })),
		locks: "-db Evict locked", says: rethought,
	},
	"nor what was given up to be evicted, when the node is handed to a maintenance that deletes": {
		seen: exhausted("web").and(after(10), onTimeout(v1alpha1.LockTimeoutDelete), recordIs(func(r *v1alpha1.DrainRecord) {
			r.Spec.Budgets = r.Spec.Budgets[1:]
			r.Status.GivenUp = []v1alpha1.GivenUpBudget{{BudgetReference: named("db"), Action: v1alpha1.LockTimeoutEvict, Message: needsOne, PodUIDs: []types.UID{"db-0"}}}
		})),
		locks: "-db Evict", says: "False/WaitingForBudget: " + strings.ReplaceAll(needsOne, "db", "web"), again: 290 * time.Second,
	},
	"waiting begins now if it began in a time to come": {
		seen: exhausted("db").and(recordIs(func(r *v1alpha1.DrainRecord) {
			to := stamped(1e8)
			r.Status.WaitStartTime, r.Status.TimeoutStartTime = &to, &to
		})),
		says: "False/WaitingForBudget: " + needsOne, again: 5 * time.Minute,
	},
}

func deletedOn(kind string) string {
	return kind + " Warning PodDeletedPastBudget: Pod shop/db-0 on node node-1 was deleted past PodDisruptionBudget shop/db, as NodeMaintenance kernel asks with onLockTimeout Delete: " + needsOne
}

func withMax(limit int) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		most := intstr.FromInt32(int32(limit))
		b.Spec.MaxUnavailable = &most
		b.Status.DesiredHealthy, b.Status.DisruptionsAllowed = 3-int32(limit), 0
	}
}

const loosen = " --type=merge -p '"

// blocked is what is in the way of the lock of shop/db, and what would help.
var blocked = map[string]struct {
	seen             []change
	kind             v1alpha1.BlockerType
	message, suggest string
}{
	"nothing":                                            {},
	"nothing if it is ours":                              {seen: taken("db", 0).and()},
	"nothing if it is not needed":                        {seen: exhausted("db").and(nothing)},
	"nothing if it was confirmed":                        {seen: change(held).and(rebooted(0), exhausted("db"))},
	"nothing if the maintenance is over":                 {seen: exhausted("db").and(complete)},
	"nothing if its pods are down and the others enough": {seen: exhausted("db").and(unready("db-0"))},
	"nothing if it does not care for pods that are not ready": {seen: exhausted("db").and(unready("db-0"), budgetIs("db", func(b *policyv1.PodDisruptionBudget) {
		always := policyv1.AlwaysAllow
		b.Status.CurrentHealthy, b.Spec.UnhealthyPodEvictionPolicy = 1, &always
	}))},
	"nothing if its pods are on their way out": {seen: exhausted("db").and(podIs("db-0", func(p *corev1.Pod) { now := stamped(0); p.DeletionTimestamp = &now }))},
	"nothing if the lock has ended":            {seen: lockedBy("alice", "db", -60, 0).and()},
	"a lock of its owner": {
		seen: lockedBy("alice", "db", 0, 60).and(), kind: v1alpha1.BlockerPDBLocked, message: byAlice,
		suggest: "It goes when its holder unlocks the budget, or at its end. If they agree: kubectl ebbtide unlock pdb/db -n shop --force",
	},
	"a lock of another node": {
		seen: lockedBy("nodemaintenance/disk/node-2", "db", 0, 60).and(), kind: v1alpha1.BlockerPDBLocked,
		message: strings.ReplaceAll(byAlice, "alice", "nodemaintenance/disk/node-2"),
		suggest: "It goes when node node-2 is back and its pods are ready. See how far its maintenance is: kubectl get nodemaintenance disk",
	},
	"a lock of another node of the same maintenance": {
		seen: lockedBy("nodemaintenance/kernel/node-2", "db", 0, 60).and(), kind: v1alpha1.BlockerPDBLocked,
		message: strings.ReplaceAll(byAlice, "alice", "nodemaintenance/kernel/node-2"),
		suggest: "Node node-2 is of the same NodeMaintenance, and gives its locks to the next when it has rebooted and its pods are ready. What it waits for: kubectl describe drainrecord node-2",
	},
	"a lock that nobody can read": {
		seen: annotated("db", "{}").and(), kind: v1alpha1.BlockerPDBLocked,
		message: "PodDisruptionBudget shop/db is locked by an unknown holder until 2026-11-21T08:10:00Z: annotation ebbtide.dev/lock names no holder.",
		suggest: "It ends ten minutes after the budget was last changed. If nobody needs it: kubectl -n shop annotate poddisruptionbudget db ebbtide.dev/lock-",
	},
	"it allows too little": {
		seen: exhausted("db").and(), kind: v1alpha1.BlockerPDBExhausted, message: needsOne,
		suggest: "It opens as soon as more of its pods are ready. See which are not: kubectl -n shop get pods -l app=db",
	},
	"its pods are down, and the others are too few": {
		seen: exhausted("db").and(unready("db-0"), budgetIs("db", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 1 })), kind: v1alpha1.BlockerPDBExhausted,
		message: "PodDisruptionBudget shop/db needs 2 healthy pods and has 1, and those that stay are not ready.",
		suggest: "It opens as soon as more of its pods are ready. See which are not: kubectl -n shop get pods -l app=db",
	},
	"what it allows is unknown": {
		seen: budgetIs("db", func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }).and(), kind: v1alpha1.BlockerPDBExhausted,
		message: "What PodDisruptionBudget shop/db allows is unknown: its status is older than its spec.",
		suggest: "If it stays so, the disruption controller does not run. See the budget: kubectl -n shop describe poddisruptionbudget db",
	},
	"it never allows anything": {
		seen: budgetIs("db", withMax(0)).and(), kind: v1alpha1.BlockerPDBUnsatisfiable,
		message: "PodDisruptionBudget shop/db can never allow a disruption: maxUnavailable is 0: no pod may ever be disrupted.",
		suggest: `Let 1 pod be unavailable: kubectl -n shop patch poddisruptionbudget db` + loosen + `{"spec":{"minAvailable":null,"maxUnavailable":1}}'`,
	},
	"it never allows so much": {
		seen: budgetIs("db", func(b *policyv1.PodDisruptionBudget) { withMax(1)(b); b.Status.DisruptionsAllowed = 1 }).and(podIs("web-0", func(p *corev1.Pod) { p.UID = "db-1" }), recordIs(func(r *v1alpha1.DrainRecord) {
			r.Spec.Budgets = r.Spec.Budgets[:1]
			r.Spec.Pods = append(r.Spec.Pods, v1alpha1.StayingPod{Namespace: "shop", Name: "db-1", UID: "db-1", BudgetUIDs: []types.UID{"db"}})
		})), kind: v1alpha1.BlockerPDBUnsatisfiable,
		message: "PodDisruptionBudget shop/db can never allow the 2 disruptions that the pods that stay need: 2 of its 3 pods have to be healthy.",
		suggest: `Let 2 pods be unavailable: kubectl -n shop patch poddisruptionbudget db` + loosen + `{"spec":{"minAvailable":null,"maxUnavailable":2}}'`,
	},
	"it counts replicas of nobody": {
		seen: budgetIs("db", func(b *policyv1.PodDisruptionBudget) {
			withMax(1)(b)
			b.Status.ExpectedPods, b.Status.DesiredHealthy = 0, 0
		}).and(), kind: v1alpha1.BlockerPDBUnsatisfiable,
		message: "PodDisruptionBudget shop/db can never allow a disruption: it counts in replicas and its pods have no controller.",
		suggest: `Give the pods a controller, or count pods: kubectl -n shop patch poddisruptionbudget db` + loosen + `{"spec":{"minAvailable":0,"maxUnavailable":null}}'`,
	},
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	for name, test := range blocked {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(test.seen...)
			var want []v1alpha1.Blocker
			if test.kind != "" {
				since, db := stamped(0), v1alpha1.BlockerObject{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop", Name: "db", UID: "db"}
				want = []v1alpha1.Blocker{{Type: test.kind, Object: db, PodCount: 1, SinceTime: &since, Message: test.message, Suggestion: test.suggest}}
				if strings.Contains(test.message, "2 disruptions") {
					want[0].PodCount = 2
				}
			}
			got := drainlock.Blockers(drainlock.Facts{Now: s.Now, Record: s.Record, Pods: s.Pods, Budgets: s.Budgets})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("blockers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		seen []change
		want string
	}{
		"both":    {want: "Waiting for the locks of 2 PodDisruptionBudgets."},
		"one":     {seen: change(held).and(rebooted(0), recordIs(func(r *v1alpha1.DrainRecord) { r.Status.Locks = r.Status.Locks[:1] })), want: "Waiting for the lock of PodDisruptionBudget shop/web."},
		"settle":  {seen: change(both).and(), want: "Waiting for the locks of 2 PodDisruptionBudgets."},
		"none":    {seen: change(held).and(rebooted(0))},
		"promise": {seen: change(held).and(recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.Budgets = nil })), want: "Waiting for the node to record that it may go down."},
		"changed": {seen: change(held).and(rebooted(0), recordIs(func(r *v1alpha1.DrainRecord) { r.Generation++ }))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := snapshot(test.seen...).Record
			if got := drainlock.Waiting(drainlock.Facts{Now: began, Record: r}); got != test.want || (got == "") != drainlock.Held(r) {
				t.Errorf("Waiting = %q, want %q; held %t", got, test.want, drainlock.Held(r))
			}
		})
	}
	if got := drainlock.Waiting(drainlock.Facts{}); got != "" {
		t.Errorf("Waiting without a record = %q", got)
	}
	if got := drainlock.Blockers(drainlock.Facts{}); got != nil {
		t.Errorf("Blockers without a record = %v", got)
	}
}
