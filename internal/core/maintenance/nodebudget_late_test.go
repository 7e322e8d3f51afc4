package maintenance_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// givesBack are events of nodes that a deadline gives back.
func givesBack(nodes ...string) []string {
	all := []string{"NodeMaintenance/m NodeGivenBack"}
	for _, node := range nodes {
		all = append(all, "Node/"+node+" NodeGivenBack")
	}
	return all
}

type waitingAtDeadline struct {
	drained   []string
	late      []string
	want      []v1alpha1.NodeReference
	stage     v1alpha1.NodeMaintenanceStage
	succeeded string
}

// Nodes that waited are given back first of all: they do not come when there is room.
func TestDeadlineGivesBackNodesThatWait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]waitingAtDeadline{
		"some are drained": {
			drained: []string{"two"}, late: []string{"one", "three"}, want: []v1alpha1.NodeReference{{Name: "one"}, {Name: "three"}},
			stage: drain, succeeded: "none",
		},
		"none is drained": {late: []string{"one", "three", "two"}, stage: complete, succeeded: "False DeadlinePassed"},
	} {
		t.Run(name, func(t *testing.T) {
			giveBackWaiting(t, test)
		})
	}
}

func giveBackWaiting(t *testing.T, test waitingAtDeadline) {
	t.Helper()
	w := newWorld(t, "one", "three", "two")
	b := w.limit("web", "one")
	m := w.maintenance("m", drain, nil, "one", "two", "three")
	m.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(due), OnDeadline: v1alpha1.DeadlineGiveBack}
	for _, node := range w.nodes {
		w.run(node.Name, 1, 0)
	}
	w.passes(3)
	for _, node := range test.drained {
		w.leave(node, 0)
	}
	w.now = due.Add(-time.Second)
	w.passes(2)
	w.now = due
	d := w.pass().Maintenances[0]
	if d.GiveBack == nil {
		t.Fatal("nothing is given back")
	}
	if diff := cmp.Diff(givesBack(test.late...), reasons(d.GiveBack.Events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.passes(3)
	if diff := cmp.Diff(test.want, m.Spec.CompletedNodes); diff != "" {
		t.Errorf("given back (-want +got):\n%s", diff)
	}
	admit(b, m, "one")
	if waiting := w.pass().Waiting; len(waiting) > 0 {
		t.Errorf("after the deadline %v wait", waiting)
	}
	w.passes(2)
	w.expectUntouched("after the deadline", "one")
	wantHeld(t, w, test.drained...)
	if diff := cmp.Diff(test.succeeded, conditionOf(m, v1alpha1.ConditionSucceeded)); m.Spec.Stage != test.stage || diff != "" {
		t.Errorf("stage is %s, Succeeded (-want +got):\n%s", m.Spec.Stage, diff)
	}
}

// A deadline that deletes pods deletes none of a node that waits, and is not met.
func TestDeadlineIsNotMetWhileNodesWait(t *testing.T) {
	t.Parallel()
	for _, action := range []v1alpha1.DeadlineAction{v1alpha1.DeadlineWait, v1alpha1.DeadlineDelete} {
		w := newWorld(t, "one", "two")
		w.limit("web", "one")
		m := w.maintenance("m", drain, nil, "one", "two")
		m.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(due), OnDeadline: action}
		w.run("one", 1, 0)
		w.run("two", 1, 0)
		w.passes(3)
		w.leave("two", 0)
		w.now = due
		d := w.pass().Maintenances[0]
		if got := conditionOf(m, v1alpha1.ConditionPastDeadline); got != "True WaitingForPods" || !slices.Contains(reasons(d.Events), "NodeMaintenance/m PastDeadline") {
			t.Errorf("%s: PastDeadline is %s, events %v", action, got, reasons(d.Events))
		}
		w.passes(2)
		w.expectUntouched(string(action), "one")
		w.nodeBudgets = nil
		w.passes(2)
		w.leave("one", 0)
		w.passes(2)
		if got := conditionOf(m, v1alpha1.ConditionPastDeadline); got != "False DeadlineMet" {
			t.Errorf("%s: when all are drained, PastDeadline is %s", action, got)
		}
	}
}

func TestNodeThatWaitsIsNotHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "node-7")
	b := w.limit("web", "node-7")
	w.reports("node-7", "boot-1", "v1.36.4", dawn)
	m := w.maintenance("m", drain, nil, "node-7")
	m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true}
	w.run("node-7", 1, 0)
	w.settle()
	w.expect(t, "it waits", "Drain, False WaitingForDrain")
	w.reports("node-7", "boot-2", "v1.36.4", w.now)
	w.later(time.Hour)
	w.expect(t, "it reboots meanwhile", "Drain, False WaitingForDrain")
	w.expectUntouched("it reboots meanwhile", "node-7")
	admit(b, m, "node-7")
	w.leave("node-7", 0)
	w.settle()
	w.expect(t, "it is admitted", "Drain, False WaitingForBoot")
}

// The node was handed over, deleted, and created again: it is back although the budget holds it.
func TestNodeThatWasHandedOverComesBackUnderABudget(t *testing.T) {
	t.Parallel()
	w, m := handsOver(t, v1alpha1.CompleteWhen{NewBoot: true})
	w.limit("web", "node-7")
	w.nodes = nil
	w.later(time.Minute)
	w.expect(t, "it is gone", "Drain, False NodesGone")
	w.node("node-7").UID = "another"
	w.run("node-7", 1, 0)
	w.reports("node-7", "boot-2", "v1.36.4", w.now)
	w.settle()
	w.expect(t, "it is created again", "Drain, False NotReady")
	w.expectUntouched("it is created again", "node-7")
	w.now = w.now.Add(3 * time.Second)
	if got := w.pass().RequeueAfter; got != 27*time.Second {
		t.Errorf("it is decided again after %s, want what is left of 30s", got)
	}
	w.later(27 * time.Second)
	w.expect(t, "it is back", "Complete, True Returned")
	w.expectUntouched("it is back", "node-7")
	if len(m.Finalizers) > 0 {
		t.Errorf("finalizers are left: %v", m.Finalizers)
	}
}

// The nodes that wait are counted, and the status does not grow without bounds.
func TestStatusOfManyWaitingNodesIsBounded(t *testing.T) {
	t.Parallel()
	const nodes = 5000
	w := newWorld(t)
	for n := range nodes {
		w.node(fmt.Sprintf("ip-10-0-%04d.eu-central-1.compute.internal", n)).Labels = map[string]string{"pool": "all"}
	}
	b := w.limit("a-budget-of-all-nodes-of-a-pool-with-a-long-name")
	b.Spec.NodeSelector = labelledNodes("pool", "all")
	m := w.maintenance("m", drain, nil)
	m.Spec.NodeSelector = labelledNodes("pool", "all")
	w.pass()
	w.now = w.now.Add(3 * time.Second)
	d := w.pass()
	if m.Status.NodeCount != nodes || len(d.Waiting) != nodes || len(d.Nodes) != 0 {
		t.Errorf("%d nodes are counted, %d wait, something is done to %d", m.Status.NodeCount, len(d.Waiting), len(d.Nodes))
	}
	if text, err := json.Marshal(m); err != nil || len(text) > 1<<20 {
		t.Errorf("the object has %d bytes (%v)", len(text), err)
	}
	if len(m.Status.NodeStatuses) < 1000 || len(m.Status.NodeStatuses[0].Blockers) != 1 {
		t.Errorf("%d nodes are listed, the first is %+v", len(m.Status.NodeStatuses), m.Status.NodeStatuses[0])
	}
	if !slices.IsSortedFunc(m.Status.NodeStatuses, func(a, b v1alpha1.NodeMaintenanceNodeStatus) int {
		return strings.Compare(a.NodeRef.Name, b.NodeRef.Name)
	}) {
		t.Error("they are not sorted")
	}
	if !w.settled() {
		t.Error("the status is recorded again and again")
	}
}

// A node is announced as planned by those who wait, and by those who do not.
func TestHeldNodeIsAnnouncedForEachMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	w.limit("web", "one")
	w.maintenance("m", drain, nil, "one")
	w.maintenance("later", idle, nil, "one")
	w.passes(2)
	planned := nodeCondition(w.find("one"), v1alpha1.NodeMaintenancePlanned)
	if planned.Status != corev1.ConditionTrue || !strings.Contains(planned.Message, "m") || !strings.Contains(planned.Message, "later") {
		t.Errorf("it announces %+v", planned)
	}
}
