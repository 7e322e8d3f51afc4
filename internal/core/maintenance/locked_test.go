package maintenance_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// report is what everybody is told of a maintenance in place.
type report struct {
	node, drained, blocked, summary string
	announced                       string
	events                          []string
}

func (w *world) report(m *v1alpha1.NodeMaintenance) report {
	w.t.Helper()
	var r report
	for _, d := range w.pass().Maintenances {
		r.events = append(r.events, reasons(d.Events)...)
	}
	r.node = retainedLine(m)
	is := func(kind string) string {
		c := meta.FindStatusCondition(m.Status.Conditions, kind)
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	r.drained, r.blocked, r.summary = is(v1alpha1.ConditionDrained), is(v1alpha1.ConditionBlocked), m.Status.Summary
	r.announced = string(nodeCondition(w.find("one"), v1alpha1.NodeDrained).Status)
	return r
}

func (w *world) expectReport(what string, m *v1alpha1.NodeMaintenance, want report) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.report(m), cmp.AllowUnexported(report{})); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const notBlocked = "False NotBlocked: Nothing holds the maintenance up."

// lockedByOwner locks a budget for an hour.
func (w *world) lockedByOwner(b int) {
	metav1.SetMetaDataAnnotation(&w.budgets[b].ObjectMeta, v1alpha1.LockAnnotation, budget.Lock{
		Holder: "dba", Reason: "rebalancing", AcquiredAt: metav1.NewTime(w.now), ExpiresAt: metav1.NewTime(w.now.Add(time.Hour)),
	}.Write())
}

// A maintenance in place is drained when the locks are held, and everything that
// is told of it says so.
func TestWhatIsToldUntilTheLocksAreHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
	w.budget("db")
	w.budget("web")
	w.run("one", 2, 0, stays, label("app", "db"))
	w.run("one", 1, 0, stays, label("app", "web"))
	other := w.run("one", 1, 0)[0]
	w.pass()
	w.expectReport("a pod leaves", m, report{
		node:    "one 0+1 Evacuating 3 retained",
		drained: "False Draining: 0 of 1 node drained, 1 pod left: 0 pending evacuation, 1 evacuating; 3 pods retained. 0 of 2 budgets locked.",
		blocked: notBlocked, summary: "0/1 nodes drained, 1 pod left, 2 budgets not locked", announced: "False",
	})
	w.remove(other.UID)
	waiting := report{
		node:    "one 0+0 Waiting for the locks of 2 PodDisruptionBudgets. 3 retained",
		drained: "False Draining: 0 of 1 node drained, 0 pods left: 0 pending evacuation, 0 evacuating; 3 pods retained. 0 of 2 budgets locked.",
		blocked: notBlocked, summary: "0/1 nodes drained, 2 budgets not locked", announced: "False",
	}
	w.expectReport("the record is written", m, waiting)
	w.expectReport("nobody has looked at it", m, waiting)

	w.lockedByOwner(1)
	w.take("one", "db")
	held := report{
		node:    "one 0+0 Waiting for the lock of PodDisruptionBudget default/web. 3 retained",
		drained: "False Blocked: 0 of 1 node drained, 0 pods left: 0 pending evacuation, 0 evacuating; 3 pods retained. 1 of 2 budgets locked.",
		blocked: "True PDBLocked: PDBLocked: 1 pod on 1 node. PodDisruptionBudget/default/web: PodDisruptionBudget default/web is locked by dba until 2026-03-01T08:00:00Z: rebalancing. " +
			"It goes when its holder unlocks the budget, or at its end. If they agree: kubectl ebbtide unlock pdb/web -n default --force",
		summary: "0/1 nodes drained, 1 blocked, 1 budget not locked", announced: "False",
		events: []string{"NodeMaintenance/m Blocked", "Node/one Blocked"},
	}
	w.expectReport("an owner has the other one", m, held)

	w.budgets[1].Annotations = nil
	w.take("one", "web")
	done := report{
		node:    "one 0+0 Drained. 3 retained",
		drained: "True Drained: 1 of 1 node drained, 0 pods left: 0 pending evacuation, 0 evacuating; 3 pods retained. 2 of 2 budgets locked.",
		blocked: notBlocked, summary: "1/1 nodes drained", announced: "True",
		events: []string{"Node/one NodeDrained", "NodeMaintenance/m Drained"},
	}
	w.expectReport("both are locked", m, done)
	done.events = nil
	w.expectReport("it stays so", m, done)

	w.observe("one", func(status *v1alpha1.DrainRecordStatus) { status.Locks = status.Locks[1:] })
	w.expectReport("a lock is lost", m, report{
		node:    "one 0+0 Waiting for the lock of PodDisruptionBudget default/db. 3 retained",
		drained: "False Draining: 0 of 1 node drained, 0 pods left: 0 pending evacuation, 0 evacuating; 3 pods retained. 1 of 2 budgets locked.",
		blocked: notBlocked, summary: "0/1 nodes drained, 1 budget not locked", announced: "False",
	})
}

// A lock that is taken and not confirmed is no promise.
func TestALockThatIsNotConfirmedIsNotHeld(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	w.observe("one", func(status *v1alpha1.DrainRecordStatus) {
		status.Locks = []v1alpha1.RecordedLock{{BudgetReference: reference("db"), AcquiredTime: metav1.NewTime(w.now)}}
	})
	w.pass()
	if isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Errorf("the maintenance is %+v, want it not Drained", m.Status)
	}
}

// In place and ordinary on one node: each is drained when its own is done, and the
// node when both are.
func TestInPlaceAndOrdinaryOnOneNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	w.runners.DaemonSets = true
	m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
	m.Spec.DrainDepth = v1alpha1.PodTypeDefault
	n := w.maintenance("n", drain, nil, "one")
	w.budget("agent")
	w.run("one", 1, 0, stays, label("app", "agent"), ofDaemonSet)
	w.run("one", 1, 0, stays, label("app", "db"))
	w.pass()
	w.expectReport("the ordinary one has both leave, and one is under a budget", m, report{
		node:    "one 0+0 Waiting for the pods that leave for n. 2 retained",
		drained: "False Draining: 0 of 1 node drained, 0 pods left: 0 pending evacuation, 0 evacuating; 2 pods retained.",
		blocked: notBlocked, summary: "0/1 nodes drained", announced: "False",
	})
	n.Spec.DrainDepth = v1alpha1.PodTypeDefault
	w.expectReport("now it leaves the one of the DaemonSet", m, report{
		node:    "one 0+0 Waiting for the pods that leave for n; then 1 budget will be locked. 2 retained",
		drained: "False Draining: 0 of 1 node drained, 0 pods left: 0 pending evacuation, 0 evacuating; 2 pods retained. 0 of 1 budget locked.",
		blocked: notBlocked, summary: "0/1 nodes drained, 1 budget not locked", announced: "False",
	})
	w.remove("uid-0002")
	w.pass()
	if got := needed(w.records["one"]); got != "m 300s: pod-0001(agent) lock agent" {
		t.Fatalf("the record is %q, want it to need the budget of the agent", got)
	}
	w.expectReport("nobody locks it", n, report{
		node:    "one 0+0 Drained. 1 retained",
		drained: "True Drained: 1 of 1 node drained, 0 pods left: 0 pending evacuation, 0 evacuating; 1 pod retained.",
		blocked: notBlocked, summary: "1/1 nodes drained", announced: "False",
	})
	w.take("one", "agent")
	w.expectReport("it is locked", m, report{
		node:    "one 0+0 Drained. 1 retained",
		drained: "True Drained: 1 of 1 node drained, 0 pods left: 0 pending evacuation, 0 evacuating; 1 pod retained. 1 of 1 budget locked.",
		blocked: notBlocked, summary: "1/1 nodes drained", announced: "True",
		events: []string{"Node/one NodeDrained", "NodeMaintenance/m Drained"},
	})
}

// A node that waits for locks has no pod that has to leave, so no drain plan waits
// for it: neither that of its own maintenance nor one of another.
func TestNoPlanWaitsForLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one", "two")
	plan := []v1alpha1.DrainPlanEntry{entry("Default", 1000)}
	m := inPlace(w.maintenance("m", drain, plan, "one", "two"), 300)
	other := w.maintenance("other", drain, plan, "two")
	w.budget("db")
	w.run("one", 1, 0, stays, label("app", "db"))
	w.run("two", 1, 5000)
	w.pass()
	w.pass()
	if diff := cmp.Diff([]string{
		"one 0+0 Waiting for the lock of PodDisruptionBudget default/db. [Default 1000000000]",
		"two 0+1 Evacuating [Default 1000000000]",
	}, lines(m)); diff != "" {
		t.Errorf("m (-want +got):\n%s", diff)
	}
	w.leave("two", 5000)
	w.passAndTell("two")
	w.expectLines("other is done", other, "two 0+0 Drained. [Default 2147483647, DaemonSet 2147483647, Static 2147483647]")
	if got, want := m.Status.Summary, "1/2 nodes drained, 1 budget not locked"; got != want {
		t.Errorf("summary is %q, want %q", got, want)
	}
}

// Nobody is told of locks where what holds the site is not understood.
func TestAFrozenSiteWritesNoRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
	odd := w.maintenance("odd", v1alpha1.StageCordon, nil, "one")
	w.budget("db")
	w.pass()
	odd.Spec.Stage = "Odd"
	w.run("one", 1, 0, stays, label("app", "db"))
	odd.Spec.NodeSelector, odd.Spec.Stage = nil, v1alpha1.StageCordon
	w.expectRecord("while the other one cannot be understood", "one", "no record")
	if got, want := retainedLine(m), "one 0+0 Waiting for a maintenance of the node whose spec is invalid; then 1 budget will be locked. 1 retained"; got != want {
		t.Errorf("the node is %q, want %q", got, want)
	}
	odd.Spec.NodeSelector = named("one")
	w.expectRecord("now it can", "one", "m 300s: pod-0001(db) lock db")
}

// Where pods are not known, nothing is concluded from a record.
func TestUnknownPodsAreNotHeld(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	w.take("one", "db")
	w.pass()
	w.passKnowing(false)
	if got, want := retainedLine(m), "one 0+0 Waiting for the pods of the node to be read. 0 retained"; got != want || isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Errorf("the node is %q and Drained %v, want %q and false", got, isTrue(m.Status.Conditions, v1alpha1.ConditionDrained), want)
	}
}

// A pod that somebody else removes keeps the locks that are missing from being
// taken, so nobody is drained by leaving them out.
func TestALockThatHasToWaitIsMissing(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	w.runners.DaemonSets = true
	m.Spec.DrainDepth = v1alpha1.PodTypeDefault
	w.take("one", "db")
	w.pass()
	if !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Fatalf("the maintenance is %+v, want it Drained", m.Status)
	}
	w.maintenance("deep", drain, nil, "one").Spec.InPlace = m.Spec.InPlace
	w.budget("web")
	w.run("one", 1, 0, stays, label("app", "web"))
	agent := w.run("one", 1, 0, ofDaemonSet)[0]
	w.expectRecord("the agent leaves first", "one", "m 300s: pod-0001(db) pod-0002(web) lock db")
	w.take("one")
	w.pass()
	if got, want := retainedLine(m), "one 0+0 Waiting for the pods that leave for deep; then 2 budgets will be locked. 3 retained"; got != want {
		t.Errorf("the node is %q, want %q", got, want)
	}
	if isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Error("the maintenance is Drained although a pod stays whose budget is not locked")
	}
	w.remove(agent.UID)
	w.expectRecord("then the new one is locked, too", "one", "m 300s: pod-0001(db) pod-0002(web) lock db web")
}
