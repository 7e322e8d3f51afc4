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

func bearing(record string, second float64) change {
	return func(s *drainlock.Snapshot) {
		boots("boot-1")(s)
		promises(drainlock.Step{Promise: `{"recordUID":"` + record + `","maintenanceRef":{"name":"kernel","uid":"kernel-uid"},"bootID":"boot-1",` +
			`"expectedDowntimeSeconds":600,"time":"` + at(second).Format(time.RFC3339) + `"}`})(s)
	}
}

func neighbour(name string) change {
	return func(s *drainlock.Snapshot) { s.Away = map[types.UID]string{types.UID(name): "node-2"} }
}

func TestPromiseIsRecordedBeforeTheNodeIsReleased(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"it is written when all locks are taken":       {change(both).and(boots("boot-1"), after(1)), "Settling; WritePromise; db web; again in 1s"},
		"no lock is confirmed without it":              {change(both).and(boots("boot-1"), live, after(9)), "Settling; WritePromise; db web; again in 9m51s"},
		"nor before it is old":                         {change(both).and(bearing("", 8), live, after(9)), "Settling; db web; again in 1s"},
		"nor while others may not have been seen":      {change(both).and(bearing("", 5), live, after(9), unwatched), "Settling; db web; again in 9m51s"},
		"nor while another node may be away":           {change(both).and(bearing("", 5), live, after(9), neighbour("db")), "WaitingForNode; RemoveLock web; again in 9m51s"},
		"then they are":                                {change(both).and(bearing("", 5), live, after(9)), "Held; db! web!; NodeMaintenance:LocksHeld; again in 9m51s"},
		"nothing is locked while another node is away": {neighbour("db").and(), "WaitingForNode"},
		"a node that was not told takes it back":       {bearing("", 5).and(after(9), neighbour("db")), "WaitingForNode; RemovePromise"},
		"before it takes a lock again":                 {bearing("", 5).and(after(9)), "Locking; RemovePromise"},
		"one that may have been told keeps it":         {bearing("of another record", 5).and(after(9), neighbour("db")), "WaitingForNode; again in 10m0s"},
	})
}

func unwatched(s *drainlock.Snapshot) { s.Watched = false }

func TestNodeWithoutBudgetsIsFollowed(t *testing.T) {
	t.Parallel()
	l := &life{t: t, s: snapshot(boots("boot-1"), recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.Budgets, r.Spec.Pods = nil, nil }))}
	l.keeps(0, settling)
	l.keeps(2, allHeld)
	l.keeps(9, returned, boots("boot-2"))
	if drainlock.Promised(l.s.Node) {
		t.Error("a node that is back bears a promise")
	}
}

// TestPromiseOutlivesItsRecord: another record of the node knows of it, keeps it without
// any lock, and follows the reboot.
func TestPromiseOutlivesItsRecord(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.s.Record = snapshot().Record
	l.s.Record.UID = "another"
	l.keeps(10, toBeLocked, lost, budgetIs("db", unannotated), budgetIs("web", unannotated), unready("db-0"), unready("web-0"))
	if !drainlock.Promised(l.s.Node) {
		t.Fatal("the promise is gone")
	}
	l.keeps(20, toBeLocked, boots("boot-2"))
	l.keeps(21, returned, runs("db-0", "b"), runs("web-0", "b"))
	if drainlock.Promised(l.s.Node) {
		t.Error("a node that is back bears a promise")
	}
}

// TestPromiseIsTakenBack when a replica elsewhere fails, or a late pod comes under the
// lock. The locks stay, as the node may be on its way, until it has not gone for long.
func TestPromiseIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shows change
		says  string
	}{
		"a replica elsewhere fails": {exhausted("db"), waitingForBudget},
		"a late pod comes":          {latePod, waitingForBudget},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.keeps(10, test.says, test.shows)
			if drainlock.Held(l.s.Record) {
				t.Error("the promise stands")
			}
			l.keeps(11, allHeld, budgetIs("db", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy, b.Status.DisruptionsAllowed = 4, 2 }))
			if !drainlock.Held(l.s.Record) {
				t.Error("the promise does not stand again")
			}
			l.keeps(20, test.says, budgetIs("db", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy, b.Status.DisruptionsAllowed = 3, 1 }), test.shows)
			l.frees(620, "web db", test.says)
			if drainlock.Promised(l.s.Node) {
				t.Error("the promise is still there")
			}
		})
	}
}

func latePod(s *drainlock.Snapshot) {
	pod := s.Pods[0].DeepCopy()
	pod.Name, pod.UID = "db-9", "db-9"
	if len(s.Pods) == 2 {
		s.Pods = append(s.Pods[:2:2], []*corev1.Pod{pod}...)
		s.Record = s.Record.DeepCopy()
		s.Record.Spec.Pods = append(s.Record.Spec.Pods, v1alpha1.StayingPod{Namespace: "shop", Name: "db-9", UID: "db-9", BudgetUIDs: []types.UID{"db"}})
	}
}

func TestRebuiltRecordMatchesTheNode(t *testing.T) {
	t.Parallel()
	s := snapshot(bearing("", 0))
	spec := drainlock.Remake(s.Node, s.Pods, s.Budgets)
	if !spec.Complete || len(spec.Pods) != 2 || len(spec.Budgets) != 2 || spec.MaintenanceRef.Name != "kernel" || spec.InPlace.ExpectedDowntimeSeconds != 600 {
		t.Errorf("spec = %+v", spec)
	}
	promises(drainlock.Step{Promise: "nobody can read this"})(&s)
	if spec := drainlock.Remake(s.Node, nil, nil); spec.MaintenanceRef.Name != "unknown" || spec.InPlace.ExpectedDowntimeSeconds != 1 {
		t.Errorf("spec = %+v", spec)
	}
}
