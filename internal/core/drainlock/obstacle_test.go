package drainlock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/test/golden"
)

const (
	byAlice          = "PodDisruptionBudget shop/db is locked by alice."
	waitingForBudget = "WaitingForBudget"
	needsOne         = "PodDisruptionBudget shop/db allows 0 of the 1 disruption required by the pods that stay."
)

// TestLocksThatCannotBeHadAreGivenUp is what happens while a lock cannot be had, and when it takes too long.
func TestLocksThatCannotBeHadAreGivenUp(t *testing.T) {
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

var elsewhere, elsewhereWeb = lockedBy("nodemaintenance/kernel/node-2", "db", 0, 1200), lockedBy("nodemaintenance/kernel/node-2", "web", 0, 1200)

var givenUpWhileLocked = recordIs(func(r *v1alpha1.DrainRecord) {
	r.Spec.Budgets = r.Spec.Budgets[1:]
	r.Status.TimeoutStartTime = nil
	r.Status.GivenUp = []v1alpha1.GivenUpBudget{{BudgetReference: named("db"), Action: v1alpha1.LockTimeoutEvict, Message: byAlice, Locked: true, PodUIDs: []types.UID{"db-0"}}}
})

var waits = map[string]story{
	"the mutex is not taken":                                 {alice.and(), "WaitingForBudget; again in 1m0s"},
	"the mutex is given":                                     {alice.and(mutexOf("kernel/node-1", 0)), "WaitingForBudget; GiveMutex; again in 1m0s"},
	"what was taken goes first":                              {change(both).and(alice, mutexOf("kernel/node-1", 0)), "WaitingForBudget; RemoveLock web; NodeMaintenance:LockLost; again in 1m0s"},
	"several are in the way":                                 {alice.and(exhausted("web")), "WaitingForBudget; again in 1m0s"},
	"there is no time limit for Wait":                        {exhausted("db").and(after(1e5), onTimeout(v1alpha1.LockTimeoutWait)), "WaitingForBudget"},
	"nor for what nobody knows":                              {exhausted("db").and(after(1e5), onTimeout("Whatever")), "WaitingForBudget"},
	"the time limit of Evict":                                {exhausted("db").and(after(300)), "Locking; -db Evict; NodeMaintenance:LockTimedOut"},
	"the time limit is 300 s unless somebody says otherwise": {exhausted("db").and(after(299), onTimeout(""), recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.InPlace.LockTimeoutSeconds = 0 })), "WaitingForBudget; again in 1s"},
	"the time limit of Delete":                               {exhausted("db").and(after(300), onTimeout(v1alpha1.LockTimeoutDelete)), "Locking; DeletePod db-0; -db Delete; NodeMaintenance:LockTimedOut Pod:PodDeletedPastBudget NodeMaintenance:PodDeletedPastBudget"},
	"nothing is held meanwhile":                              {change(both).and(after(300), exhausted("db")), "Locking; RemoveLock web; -db Evict; NodeMaintenance:LockTimedOut"},
	"a promise is kept all the same": {change(both).and(taken("web", 100), after(300), exhausted("db"), recordIs(func(r *v1alpha1.DrainRecord) {
		confirmed := stamped(2)
		r.Status.Locks[1].ConfirmedTime = &confirmed
	})), "Locking; RemoveLock db; web! -db Evict; NodeMaintenance:LockTimedOut; again in 6m40s"},
	"then the others are locked":                               {givenUp.and(func(s *drainlock.Snapshot) { s.Pods = s.Pods[1:] }), "Locking; TakeMutex kernel/node-1; -db Delete"},
	"the pod is deleted last":                                  {givenUp.and(exhausted("web")), "WaitingForBudget; DeletePod db-0; -db Delete; Pod:PodDeletedPastBudget NodeMaintenance:PodDeletedPastBudget; again in 5m0s"},
	"but no other of its name":                                 {givenUp.and(exhausted("web"), podIs("db-0", func(p *corev1.Pod) { p.UID = "another" })), "WaitingForBudget; -db Delete; again in 5m0s"},
	"nor one that somebody has made an ordinary one":           {givenUp.and(exhausted("web"), podIs("db-0", func(p *corev1.Pod) { delete(p.Labels, v1alpha1.OnUpgradeLabel) })), "WaitingForBudget; -db Delete; again in 5m0s"},
	"nor one that is to be skipped by now":                     {givenUp.and(exhausted("web"), podIs("db-0", func(p *corev1.Pod) { p.Labels[v1alpha1.DrainLabel] = "skip" })), "WaitingForBudget; -db Delete; again in 5m0s"},
	"nor one that is terminating":                              {givenUp.and(exhausted("web"), podIs("db-0", func(p *corev1.Pod) { now := stamped(0); p.DeletionTimestamp = &now })), "WaitingForBudget; -db Delete; again in 5m0s"},
	"nor for another maintenance, which must not":              {givenUp.and(exhausted("web"), onTimeout(v1alpha1.LockTimeoutEvict)), "WaitingForBudget; -db Delete; again in 5m0s"},
	"nobody gives up while it is another node's turn":          {elsewhere.and(after(400)), "WaitingForBudget; again in 13m20s"},
	"the time begins when it is not any more":                  {exhausted("db").and(after(400), recordIs(func(r *v1alpha1.DrainRecord) { r.Status.TimeoutStartTime = nil })), "WaitingForBudget; again in 5m0s"},
	"nor while its owner's lock keeps the pods from leaving":   {lockedBy("alice", "db", 0, 1200).and(after(300)), "WaitingForBudget; again in 15m0s"},
	"when that is gone the time is over":                       {exhausted("db").and(after(1200)), "Locking; -db Evict; NodeMaintenance:LockTimedOut"},
	"who may delete need not wait for it":                      {lockedBy("alice", "db", 0, 1200).and(after(300), onTimeout(v1alpha1.LockTimeoutDelete)), "Locking; DeletePod db-0; -db Delete locked; NodeMaintenance:LockTimedOut Pod:PodDeletedPastBudget NodeMaintenance:PodDeletedPastBudget"},
	"what another node has locked is not given up with it":     {elsewhere.and(after(300), exhausted("web")), "Locking; -web Evict; NodeMaintenance:LockTimedOut"},
	"nor are its pods deleted":                                 {elsewhere.and(after(300), exhausted("web"), onTimeout(v1alpha1.LockTimeoutDelete)), "Locking; DeletePod web-0; -web Delete; NodeMaintenance:LockTimedOut Pod:PodDeletedPastBudget NodeMaintenance:PodDeletedPastBudget"},
	"who is still there stays after all when the lock is gone": {givenUpWhileLocked.and(after(310), elsewhereWeb), "WaitingForBudget; NodeMaintenance:PodsStayAfterAll; again in 14m50s"},
	"not while it is locked":                                   {givenUpWhileLocked.and(after(310), elsewhereWeb, lockedBy("alice", "db", 0, 1200)), "WaitingForBudget; -db Evict locked; again in 14m50s"},
	"not when they are leaving":                                {givenUpWhileLocked.and(after(310), elsewhereWeb, podIs("db-0", func(p *corev1.Pod) { now := stamped(0); p.DeletionTimestamp = &now })), "WaitingForBudget; -db Evict locked; again in 14m50s"},
	"not while it allows too little":                           {givenUpWhileLocked.and(after(310), elsewhereWeb, exhausted("db")), "WaitingForBudget; -db Evict locked; again in 14m50s"},
	"not before the spec knows":                                {givenUpWhileLocked.and(after(310), elsewhereWeb, recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.Budgets = []v1alpha1.BudgetReference{named("db"), named("web")} })), "Locking; -db Evict locked"},
	"nor what was given up to be evicted, when the node is handed to a maintenance that deletes": {exhausted("web").and(after(10), onTimeout(v1alpha1.LockTimeoutDelete), recordIs(func(r *v1alpha1.DrainRecord) {
		r.Spec.Budgets = r.Spec.Budgets[1:]
		r.Status.GivenUp = []v1alpha1.GivenUpBudget{{BudgetReference: named("db"), Action: v1alpha1.LockTimeoutEvict, Message: needsOne, PodUIDs: []types.UID{"db-0"}}}
	})), "WaitingForBudget; -db Evict; again in 4m50s"},
	"waiting begins now if it began in a time to come": {exhausted("db").and(recordIs(func(r *v1alpha1.DrainRecord) {
		to := stamped(1e8)
		r.Status.WaitStartTime, r.Status.TimeoutStartTime = &to, &to
	})), "WaitingForBudget; again in 5m0s"},
}

func withMax(limit int) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		most := intstr.FromInt32(int32(limit))
		b.Spec.MaxUnavailable = &most
		b.Status.DesiredHealthy, b.Status.DisruptionsAllowed = 3-int32(limit), 0
	}
}

var blocked = map[string]struct {
	seen []change
	kind v1alpha1.BlockerType
	pods int32
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
		seen: lockedBy("alice", "db", 0, 60).and(), kind: v1alpha1.BlockerPDBLocked,
	},
	"a lock of another node": {
		seen: lockedBy("nodemaintenance/disk/node-2", "db", 0, 60).and(), kind: v1alpha1.BlockerPDBLocked,
	},
	"a lock of another node of the same maintenance": {
		seen: lockedBy("nodemaintenance/kernel/node-2", "db", 0, 60).and(), kind: v1alpha1.BlockerPDBLocked,
	},
	"a lock that nobody can read": {
		seen: annotated("db", "{}").and(), kind: v1alpha1.BlockerPDBLocked,
	},
	"it allows too little": {
		seen: exhausted("db").and(), kind: v1alpha1.BlockerPDBExhausted,
	},
	"its pods are down, and the others are too few": {
		seen: exhausted("db").and(unready("db-0"), budgetIs("db", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 1 })), kind: v1alpha1.BlockerPDBExhausted,
	},
	"what it allows is unknown": {
		seen: budgetIs("db", func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }).and(), kind: v1alpha1.BlockerPDBExhausted,
	},
	"it never allows anything": {
		seen: budgetIs("db", withMax(0)).and(), kind: v1alpha1.BlockerPDBUnsatisfiable,
	},
	"it never allows so much": {
		seen: budgetIs("db", func(b *policyv1.PodDisruptionBudget) { withMax(1)(b); b.Status.DisruptionsAllowed = 1 }).and(podIs("web-0", func(p *corev1.Pod) { p.UID = "db-1" }), recordIs(func(r *v1alpha1.DrainRecord) {
			r.Spec.Budgets = r.Spec.Budgets[:1]
			r.Spec.Pods = append(r.Spec.Pods, v1alpha1.StayingPod{Namespace: "shop", Name: "db-1", UID: "db-1", BudgetUIDs: []types.UID{"db"}})
		})), pods: 2, kind: v1alpha1.BlockerPDBUnsatisfiable,
	},
	"it counts replicas of nobody": {
		seen: budgetIs("db", func(b *policyv1.PodDisruptionBudget) {
			withMax(1)(b)
			b.Status.ExpectedPods, b.Status.DesiredHealthy = 0, 0
		}).and(), kind: v1alpha1.BlockerPDBUnsatisfiable,
	},
}

func TestBlockersOfBudgetThatCannotBeLocked(t *testing.T) {
	t.Parallel()
	for name, test := range blocked {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(test.seen...)
			var want []v1alpha1.Blocker
			if test.kind != "" {
				since, db := stamped(0), v1alpha1.BlockerObject{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop", Name: "db", UID: "db"}
				want = []v1alpha1.Blocker{{Type: test.kind, Object: db, PodCount: max(test.pods, 1), SinceTime: &since}}
			}
			got := drainlock.Blockers(drainlock.Facts{Now: s.Now, Record: s.Record, Pods: s.Pods, Budgets: s.Budgets})
			for i, b := range got {
				golden.Message(t, string(b.Type), b.Message, b.Suggestion)
				got[i].Message, got[i].Suggestion = "", ""
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("blockers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitingUntilLocksAreHeld(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		seen []change
		want bool
	}{
		"both":    {want: true},
		"one":     {seen: change(held).and(rebooted(0), recordIs(func(r *v1alpha1.DrainRecord) { r.Status.Locks = r.Status.Locks[:1] })), want: true},
		"settle":  {seen: change(both).and(), want: true},
		"none":    {seen: change(held).and(rebooted(0))},
		"promise": {seen: change(held).and(recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.Budgets = nil })), want: true},
		"changed": {seen: change(held).and(rebooted(0), recordIs(func(r *v1alpha1.DrainRecord) { r.Generation++ }))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := snapshot(test.seen...).Record
			got := drainlock.Waiting(drainlock.Facts{Now: began, Record: r})
			golden.Message(t, got)
			if (got != "") != test.want || drainlock.Held(r) == test.want {
				t.Errorf("Waiting = %q, want it to wait: %t; held %t", got, test.want, drainlock.Held(r))
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
