package drainlock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/test/golden"
)

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
	deleting := recordIs(func(r *v1alpha1.DrainRecord) {
		r.Spec.InPlace.OnLockTimeout, r.Spec.Budgets = v1alpha1.LockTimeoutDelete, r.Spec.Budgets[1:]
		r.Status.GivenUp = []v1alpha1.GivenUpBudget{{
			BudgetReference: named("db"), Action: v1alpha1.LockTimeoutDelete, Message: needsOne,
			PodUIDs: []types.UID{"web-0", "db-0"},
		}}
	})
	run(t, map[string]story{
		"the mutex is not taken for it":      {refused("web").and(), "BudgetRefused; again in 5m0s"},
		"the other lock is given back":       {refused("web").and(mine, taken("db", 0), noted("db", 0)), "BudgetRefused; RemoveLock db; again in 5m0s"},
		"the mutex is given back":            {refused("web").and(mine), "BudgetRefused; GiveMutex; again in 5m0s"},
		"a lock that was had is no obstacle": {refused("web").and(both), "Settling; db web; again in 2s"},
		"the other lock is renewed":          {refused("db").and(held, after(600)), "Held; WriteLock web; db! web!; NodeMaintenance:LocksHeld"},
		"the other lock is given free":       {refused("db").and(held, complete), "Releasing; RemoveLock web; db web; again in 20m0s"},
		"the other pod is deleted":           {refused("web").and(deleting), "BudgetRefused; DeletePod db-0; -db Delete; Pod:PodDeletedPastBudget NodeMaintenance:PodDeletedPastBudget; again in 5m0s"},
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
