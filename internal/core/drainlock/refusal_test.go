package drainlock_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/test/golden"
)

// refused has nobody write the budget of an application or delete its pod.
func refused(name string) change {
	const words = `admission webhook "guard.example.com" denied the request`
	return func(s *drainlock.Snapshot) {
		s.Refused = map[types.UID]string{types.UID(name): words, types.UID(name + "-0"): words}
	}
}

// TestRefusedBudgetHoldsUpNothingElse: not the locks of other nodes, which
// need the mutex, nor the other pods and budgets of this one.
func TestRefusedBudgetHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	const waiting = "False/BudgetRefused"
	deleting := recordIs(func(r *v1alpha1.DrainRecord) {
		r.Spec.InPlace.OnLockTimeout, r.Spec.Budgets = v1alpha1.LockTimeoutDelete, r.Spec.Budgets[1:]
		r.Status.GivenUp = []v1alpha1.GivenUpBudget{{
			BudgetReference: named("db"), Action: v1alpha1.LockTimeoutDelete, Message: needsOne,
			PodUIDs: []types.UID{"web-0", "db-0"},
		}}
	})
	run(t, map[string]story{
		"the mutex is not taken for it": {seen: refused("web").and(), says: waiting, again: 5 * time.Minute},
		"the other lock is given back": {
			seen: refused("web").and(mine, taken("db", 0), noted("db", 0)), does: "RemoveLock db", says: waiting, again: 5 * time.Minute,
		},
		"the mutex is given":                 {seen: refused("web").and(mine), does: `GiveMutex ""`, says: waiting, again: 5 * time.Minute},
		"a lock that was had is no obstacle": {seen: refused("web").and(both), locks: "db web", says: settling, again: 2 * time.Second},
		"the other lock is renewed": {
			seen: refused("db").and(held, after(600)), does: "WriteLock web", locks: "db! web!", says: allHeld, tells: []string{heldEvent},
		},
		"the other lock is given free": {
			seen: refused("db").and(held, complete), does: "RemoveLock web", locks: "db web",
			says: releasing, again: 20 * time.Minute,
		},
		"the other pod is deleted": {
			seen: refused("web").and(deleting), does: "DeletePod db-0", locks: "-db Delete", says: waiting, again: 5 * time.Minute,
			tells: []string{deletedPod, deletedPast},
		},
	})
}

// Who looks at the maintenance alone is told as well.
func TestRefusedBudgetBlocksMaintenance(t *testing.T) {
	t.Parallel()
	s := snapshot()
	s.Record.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionLocked, Reason: v1alpha1.ReasonBudgetRefused, Message: "The guard says no."}}
	since := stamped(0)
	s.Record.Status.WaitStartTime = &since
	want := []v1alpha1.Blocker{{
		Type: v1alpha1.BlockerPDBLocked, Object: v1alpha1.BlockerObject{APIVersion: "ebbtide.dev/v1alpha1", Kind: "DrainRecord", Name: "node-1"}, PodCount: 2, SinceTime: &since, Message: "The guard says no.",
	}}
	got := drainlock.Blockers(drainlock.Facts{Now: s.Now, Record: s.Record, Pods: s.Pods, Budgets: s.Budgets})
	golden.Message(t, got[0].Suggestion)
	got[0].Suggestion = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
}
