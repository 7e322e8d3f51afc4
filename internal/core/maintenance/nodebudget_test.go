package maintenance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
)

// limit adds a NodeBudget that applies to all and selects nodes by name, and has admitted none.
func (w *world) limit(name string, nodes ...string) *v1alpha1.NodeBudget {
	b := &v1alpha1.NodeBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.AppliesTo, b.Spec.NodeSelector = v1alpha1.NodeBudgetOfAll, named(nodes...)
	w.nodeBudgets = append(w.nodeBudgets, b)
	return b
}

func (w *world) limits() nodebudget.Set {
	if w.unread {
		return nodebudget.Unread("timeout")
	}
	return nodebudget.Compile(w.nodeBudgets)
}

// admit lists nodes in the status of a budget for a maintenance.
func admit(b *v1alpha1.NodeBudget, m *v1alpha1.NodeMaintenance, nodes ...string) {
	for _, node := range nodes {
		b.Status.Working = append(b.Status.Working, v1alpha1.BudgetNode{Name: node, NodeMaintenanceName: m.Name, NodeMaintenanceUID: m.UID})
	}
}

// waits describes the nodes of a maintenance that are listed: name, state and blockers.
func waits(m *v1alpha1.NodeMaintenance) []string {
	var all []string
	for _, s := range m.Status.NodeStatuses {
		words := []string{s.NodeRef.Name, string(s.State)}
		for _, b := range s.Blockers {
			words = append(words, fmt.Sprintf("%s by %q", b.Type, b.Object.Name))
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

func (w *world) expectWaits(what string, m *v1alpha1.NodeMaintenance, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, waits(m)); diff != "" {
		w.t.Errorf("%s: nodes of %s (-want +got):\n%s", what, m.Name, diff)
	}
}

// expectUntouched compares a node with one that no maintenance has.
func (w *world) expectUntouched(what string, nodes ...string) {
	w.t.Helper()
	for _, name := range nodes {
		node := w.find(name)
		if node.Spec.Unschedulable || len(node.Annotations)+len(node.Spec.Taints) > 0 || len(node.Labels) > 1 || w.records[name] != nil || w.asked(name) > 0 {
			w.t.Errorf("%s: node %s is touched: %d pods are asked to leave, record %v, %+v", what, name, w.asked(name), w.records[name], node)
		}
		for _, pod := range w.pods[name] {
			if pod.DeletionTimestamp != nil {
				w.t.Errorf("%s: pod %s of node %s is deleted", what, pod.Name, name)
			}
		}
	}
}

// Every kind of write that a drain has is to be seen once the node is admitted, and not before.
func TestNodeThatNoBudgetHasAdmittedIsNotTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	b := w.limit("web", "one")
	m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
	w.budget("db")
	w.run("one", 1, 0, stays, label("app", "db"))
	leaves := w.run("one", 1, 0)
	first := w.pass()
	if first.RequeueAfter != 3*time.Second || !slices.Equal(first.Waiting, []string{"one"}) {
		t.Errorf("it is decided again after %s, and waiting are %v", first.RequeueAfter, first.Waiting)
	}
	w.now = w.now.Add(3*time.Second - 1)
	if d := w.pass(); d.RequeueAfter != 1 {
		t.Errorf("shortly before it counts as blocked, it is decided again after %s", d.RequeueAfter)
	}
	w.expectWaits("before it counts as blocked", m, "one Blocked")
	if got := conditionOf(m, v1alpha1.ConditionBlocked) + ", " + conditionOf(m, v1alpha1.ConditionDrained); got != "False NotBlocked, False Draining" {
		t.Errorf("before, it is %s", got)
	}
	w.now = w.now.Add(1)
	if diff := cmp.Diff([]string{"NodeMaintenance/m", "Node/one"}, w.blocked()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.expectWaits("blocked", m, `one Blocked NodeBudget by "web"`)
	if got := conditionOf(m, v1alpha1.ConditionBlocked) + ", " + conditionOf(m, v1alpha1.ConditionDrained); got != "True NodeBudget, False Blocked" {
		t.Errorf("blocked, it is %s", got)
	}
	if d := w.pass(); d.RequeueAfter != 0 || len(w.blocked()) > 0 || len(d.Blocked) > 0 {
		t.Errorf("blocked, it is decided again after %s, and %v pods are blocked", d.RequeueAfter, d.Blocked)
	}
	w.expectUntouched("blocked", "one")
	if got := w.announces("one"); got != "MaintenancePlanned" || m.Status.NodeCount != 1 {
		t.Errorf("it announces %q, and %d nodes are selected", got, m.Status.NodeCount)
	}

	admit(b, m, "one")
	if d := w.pass(); len(d.Waiting) > 0 {
		t.Errorf("admitted, %v wait", d.Waiting)
	}
	w.pass()
	if w.asked("one") != 1 || !w.find("one").Spec.Unschedulable || conditionOf(m, v1alpha1.ConditionBlocked) != "False NotBlocked" {
		t.Errorf("admitted, %d pods are asked to leave, and it is %+v", w.asked("one"), w.find("one"))
	}
	w.remove(leaves[0].UID)
	w.pass()
	w.expectRecord("admitted", "one", "m 300s: pod-0001(db) lock db")
}

// A held node is no part of the drain plan, which goes on entry by entry on the others.
func TestHeldNodeHoldsNoOtherNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "four", "one", "three", "two")
	b := w.limit("web", "one", "two")
	m := w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{entry(v1alpha1.PodTypeDefault, 1000)}, "one", "two", "three", "four")
	admit(b, m, "two")
	for _, node := range w.nodes {
		w.run(node.Name, 1, 0)
		w.run(node.Name, 1, 5000)
	}
	w.passes(3)
	w.leave("two", 1000)
	w.leave("three", 1000)
	w.passes(2)
	if w.asked("two")+w.asked("three") > 0 {
		t.Error("the second wave begins although node four has pods of the first")
	}
	w.leave("four", 1000)
	w.passes(2)
	for _, name := range []string{"two", "three", "four"} {
		if w.asked(name) != 1 {
			t.Errorf("on node %s %d pods are asked to leave in the second wave", name, w.asked(name))
		}
		w.leave(name, 5000)
	}
	w.now = w.now.Add(3 * time.Second)
	w.passes(2)
	w.expectWaits("the others are drained", m, "four Drained", `one Blocked NodeBudget by "web"`, "three Drained", "two Drained")
	w.expectUntouched("the others are drained", "one")
	wantHeld(t, w, "four", "three", "two")
	if got := conditionOf(m, v1alpha1.ConditionDrained); got != "False Blocked" || m.Status.NodeCount != 4 {
		t.Errorf("Drained is %s with %d nodes", got, m.Status.NodeCount)
	}
	admit(b, m, "one")
	w.passes(2)
	w.leave("one", 1000)
	w.passes(2)
	w.leave("one", 5000)
	w.passes(2)
	if got := conditionOf(m, v1alpha1.ConditionDrained); got != "True Drained" {
		t.Errorf("when all are drained, Drained is %s", got)
	}
}

func TestStagesAreHeldWhileTheyCordon(t *testing.T) {
	t.Parallel()
	for stage, want := range map[v1alpha1.NodeMaintenanceStage][]string{
		idle: {"one "}, v1alpha1.StageCordon: {`one  NodeBudget by "web"`}, drain: {`one Blocked NodeBudget by "web"`}, complete: nil,
	} {
		w := newWorld(t, "one")
		b := w.limit("web", "one")
		m := w.maintenance("m", stage, nil, "one")
		w.run("one", 1, 0)
		w.passes(2)
		w.now = w.now.Add(3 * time.Second)
		held := w.pass().Waiting
		w.expectWaits(string(stage), m, want...)
		w.expectUntouched(string(stage), "one")
		cordons := stage == drain || stage == v1alpha1.StageCordon
		if len(held) > 0 != cordons {
			t.Errorf("%s: waiting are %v", stage, held)
		}
		admit(b, m, "one")
		w.passes(2)
		if w.find("one").Spec.Unschedulable != cordons || w.asked("one") > 0 != (stage == drain) {
			t.Errorf("%s, admitted: %d pods are asked to leave, and it is %+v", stage, w.asked("one"), w.find("one"))
		}
	}
}

// A maintenance that waited in Idle for long has just begun: its node is not blocked at once.
func TestStageThatHasJustBegunIsNotBlocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	w.limit("web", "one")
	m := w.maintenance("m", idle, nil, "one")
	w.passes(2)
	for _, stage := range []v1alpha1.NodeMaintenanceStage{v1alpha1.StageCordon, drain} {
		w.now = w.now.Add(time.Hour)
		m.Spec.Stage = stage
		if d := w.pass(); d.RequeueAfter != 3*time.Second {
			t.Errorf("%s: it is decided again after %s", stage, d.RequeueAfter)
		}
		if got := conditionOf(m, v1alpha1.ConditionBlocked); got != "False NotBlocked" || len(m.Status.NodeStatuses[0].Blockers) > 0 {
			t.Errorf("%s has just begun: Blocked is %s, %+v", stage, got, m.Status.NodeStatuses)
		}
		w.now = w.now.Add(time.Second)
		if d := w.pass(); d.RequeueAfter != 2*time.Second {
			t.Errorf("%s, a second later: it is decided again after %s", stage, d.RequeueAfter)
		}
		w.now = w.now.Add(2 * time.Second)
		w.pass()
		if got := conditionOf(m, v1alpha1.ConditionBlocked); got != "True NodeBudget" {
			t.Errorf("3 seconds later in %s, Blocked is %s", stage, got)
		}
	}
	// A record without its time, of another tool, counts from the creation.
	m.Status.StageStatuses = []v1alpha1.StageStatus{{Name: drain}}
	for after, want := range map[time.Duration]string{3*time.Second - 1: "False NotBlocked", 3 * time.Second: "True NodeBudget"} {
		m.CreationTimestamp = metav1.NewTime(w.now.Add(-after))
		w.pass()
		if got := conditionOf(m, v1alpha1.ConditionBlocked); got != want {
			t.Errorf("%s after its creation, Blocked is %s", after, got)
		}
	}
}

// Budgets that come later, and entries that go, change nothing about a node that is cordoned.
func TestCordonedNodeIsNeverHeld(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(w *world, m *v1alpha1.NodeMaintenance){
		"the budget comes later": func(w *world, _ *v1alpha1.NodeMaintenance) { w.limit("web", "one") },
		"budgets cannot be read": func(w *world, _ *v1alpha1.NodeMaintenance) { w.unread = true },
		"there are too many":     func(w *world, _ *v1alpha1.NodeMaintenance) { w.limitMany(nodebudget.Max + 1) },
		"its entry is gone": func(w *world, m *v1alpha1.NodeMaintenance) {
			b := w.limit("web", "one")
			admit(b, m, "one")
			w.pass()
			b.Status.Working = nil
		},
		"another maintenance has it": func(w *world, m *v1alpha1.NodeMaintenance) {
			w.limit("web", "one")
			other := w.maintenance("other", drain, nil, "one")
			w.passes(2)
			m.Spec.Stage = complete
			w.passes(2)
			if conditionOf(other, v1alpha1.ConditionBlocked) != "False NotBlocked" || !w.find("one").Spec.Unschedulable {
				w.t.Errorf("the second maintenance of the node is held: %v", waits(other))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", drain, nil, "one")
			w.run("one", 2, 0)
			w.passes(2)
			story(w, m)
			w.run("one", 1, 0)
			w.now = w.now.Add(time.Minute)
			for range 2 {
				if d := w.pass(); len(d.Waiting) > 0 {
					t.Errorf("waiting are %v", d.Waiting)
				}
			}
			if w.asked("one") != 3 || !w.find("one").Spec.Unschedulable {
				t.Errorf("%d of 3 pods are asked to leave, and it is %+v", w.asked("one"), w.find("one"))
			}
		})
	}
}

// limitMany adds budgets that select no node.
func (w *world) limitMany(count int) {
	for n := range count {
		w.limit(fmt.Sprintf("b-%03d", n), "elsewhere")
	}
}

func TestUnknownBudgetsHoldNewNodes(t *testing.T) {
	t.Parallel()
	for name, unknown := range map[string]func(w *world){
		"unread":   func(w *world) { w.unread = true },
		"too many": func(w *world) { w.limitMany(nodebudget.Max + 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			unknown(w)
			m := w.maintenance("m", drain, nil, "one")
			w.run("one", 1, 0)
			w.passes(2)
			w.now = w.now.Add(3 * time.Second)
			w.pass()
			w.expectWaits("unknown", m, `one Blocked NodeBudget by ""`)
			w.expectUntouched("unknown", "one")
			w.unread, w.nodeBudgets = false, nil
			w.passes(2)
			if w.asked("one") != 1 {
				t.Error("it is not drained when there are no budgets")
			}
		})
	}
}

// These are not held, and other maintenances of the node are no longer held when they have cordoned it.
func TestExemptMaintenancesAreNotHeld(t *testing.T) {
	t.Parallel()
	for name, exempt := range map[string]func(w *world) *v1alpha1.NodeMaintenance{
		"of a deleted Machine": func(w *world) *v1alpha1.NodeMaintenance {
			m := w.maintenance("exempt", drain, nil, "one")
			makeForMachine(m)
			return m
		},
		"of a rollout": func(w *world) *v1alpha1.NodeMaintenance {
			m := w.maintenance("exempt", drain, nil, "one")
			m.Labels = map[string]string{v1alpha1.RolloutLabel: "patch"}
			return m
		},
		"of a shutdown": func(w *world) *v1alpha1.NodeMaintenance { return w.goesDown("one") },
	} {
		t.Run(name, func(t *testing.T) {
			expectExempt(t, exempt)
		})
	}
}

func expectExempt(t *testing.T, exempt func(w *world) *v1alpha1.NodeMaintenance) {
	t.Helper()
	w := newWorld(t, "one")
	w.limit("web", "one")
	m := w.maintenance("m", drain, nil, "one")
	w.run("one", 1, 0)
	w.passes(2)
	w.expectUntouched("before", "one")
	e := exempt(w)
	if got := []bool{maintenance.Limited(e), maintenance.Limited(m)}; !slices.Equal(got, []bool{false, true}) {
		t.Errorf("limited are %v", got)
	}
	if d := w.pass(); !slices.Equal(d.Waiting, []string{"one"}) {
		t.Errorf("waiting are %v", d.Waiting)
	}
	if !w.find("one").Spec.Unschedulable {
		t.Error("the node is not cordoned")
	}
	if d := w.pass(); len(d.Waiting) > 0 {
		t.Errorf("%v wait although the node is cordoned", d.Waiting)
	}
	w.pass()
	if diff := cmp.Diff("False NotBlocked", conditionOf(m, v1alpha1.ConditionBlocked)); diff != "" {
		t.Errorf("Blocked (-want +got):\n%s", diff)
	}
	w.expectAsked("afterwards, nothing more")
	if w.asked("one") != 1 {
		t.Error("the pod is not asked to leave")
	}
}

func TestMaintenanceThatWaitsEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, m *v1alpha1.NodeMaintenance){
		"stage Complete": func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Stage = complete },
		"deletion":       func(w *world, m *v1alpha1.NodeMaintenance) { m.DeletionTimestamp = metaTime(w.now) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			w.limit("web", "one")
			m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
			w.run("one", 1, 0)
			w.passes(2)
			if len(m.Finalizers) == 0 {
				t.Fatal("the maintenance has not begun")
			}
			end(w, m)
			w.passes(2)
			w.expectUntouched("ended", "one")
			if len(m.Finalizers) > 0 || conditionOf(m, v1alpha1.ConditionSucceeded) != "False Cancelled" || conditionOf(m, v1alpha1.ConditionBlocked) != "none" {
				t.Errorf("it has finalizers %v, Succeeded is %s", m.Finalizers, conditionOf(m, v1alpha1.ConditionSucceeded))
			}
			if got := w.announces("one"); got != "" || len(m.Status.NodeStatuses) > 0 {
				t.Errorf("it announces %q, and %v are listed", got, waits(m))
			}
		})
	}
}
