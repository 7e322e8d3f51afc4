package maintenance_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// timelyNodes drains nodes until due, each of which has a pod, and then gives them back.
func timelyNodes(t *testing.T, nodes ...string) (*world, *v1alpha1.NodeMaintenance) {
	w := newWorld(t, nodes...)
	m := w.maintenance("m", drain, nil, nodes...)
	m.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(due), OnDeadline: v1alpha1.DeadlineGiveBack}
	for _, node := range nodes {
		w.run(node, 1, 0)
	}
	w.passes(3)
	return w, m
}

// atDeadline passes until everything is done.
func (w *world) atDeadline() {
	w.now = due
	w.passes(5)
}

// heldNodes are the nodes that are unschedulable.
func (w *world) heldNodes() []string {
	held := []string{}
	for _, node := range w.nodes {
		if node.Spec.Unschedulable {
			held = append(held, node.Name)
		}
	}
	return held
}

func wantHeld(t *testing.T, w *world, want ...string) {
	t.Helper()
	if got := w.heldNodes(); !slices.Equal(got, want) {
		t.Errorf("held are %v, want %v", got, want)
	}
	for _, node := range w.nodes {
		if !node.Spec.Unschedulable && (len(node.Annotations)+len(node.Labels) > 1 || w.asked(node.Name) > 0) {
			t.Errorf("node %s is not as it was: %v, %v, %d pods are asked to leave", node.Name, node.Annotations, node.Labels, w.asked(node.Name))
		}
	}
}

func wantEnd(t *testing.T, m *v1alpha1.NodeMaintenance, stage v1alpha1.NodeMaintenanceStage, pastDeadline, succeeded string) {
	t.Helper()
	want := []string{string(stage), pastDeadline, succeeded}
	got := []string{string(m.Spec.Stage), conditionOf(m, v1alpha1.ConditionPastDeadline), conditionOf(m, v1alpha1.ConditionSucceeded)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stage, PastDeadline and Succeeded (-want +got):\n%s", diff)
	}
}

func TestDeadlineGivesBackNodesThatAreNotDrained(t *testing.T) {
	t.Parallel()
	w, m := timelyNodes(t, "one", "two", "three")
	w.leave("two", 0)
	w.now = due.Add(-time.Second)
	if d := w.pass(); d.RequeueAfter != time.Second {
		t.Errorf("a second before, it is decided again after %s", d.RequeueAfter)
	}
	wantHeld(t, w, "one", "two", "three")
	wantEnd(t, m, drain, "False DeadlineAhead", "none")
	w.now = due
	late := w.pass().Maintenances[0].GiveBack
	if late == nil {
		t.Fatal("nothing is given back")
	}
	if diff := cmp.Diff([]string{"NodeMaintenance/m NodeGivenBack", "Node/one NodeGivenBack", "Node/three NodeGivenBack"}, reasons(late.Events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.passes(4)
	wantHeld(t, w, "two")
	wantEnd(t, m, drain, "True GivenBack", "none")
	m.Spec.Stage = complete
	w.passes(3)
	wantHeld(t, w)
	wantEnd(t, m, complete, "none", "False DeadlinePassed")
}

func TestDeadlineCompletesMaintenanceWithoutDrainedNodes(t *testing.T) {
	t.Parallel()
	for _, nodes := range [][]string{{"one"}, {"one", "two"}} {
		w, m := timelyNodes(t, nodes...)
		w.atDeadline()
		wantHeld(t, w)
		wantEnd(t, m, complete, "none", "False DeadlinePassed")
		if len(m.Finalizers)+len(m.Spec.CompletedNodes) > 0 {
			t.Errorf("left are %v, %v", m.Finalizers, m.Spec.CompletedNodes)
		}
	}
}

func TestDeadlineCompletesMaintenanceWithCompleteWhen(t *testing.T) {
	t.Parallel()
	w, m := timelyNodes(t, "one")
	m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true}
	w.passes(2)
	w.atDeadline()
	wantEnd(t, m, complete, "none", "False DeadlinePassed")
	wantHeld(t, w)
}

// A pod that comes after the drain does not free a node that somebody works on.
func TestDeadlineKeepsNodeThatWasDrainedBefore(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(*world, *v1alpha1.NodeMaintenance){
		"a pod has come": func(w *world, _ *v1alpha1.NodeMaintenance) { w.run("one", 1, 0) },
		"somebody has uncordoned it": func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.run("one", 1, 0)
			w.find("one").Spec.Unschedulable = false
		},
		"it is announced, and the status is old": func(w *world, m *v1alpha1.NodeMaintenance) {
			w.run("one", 1, 0)
			m.Status.NodeStatuses[0].DrainedTime = nil
		},
		"its conditions are gone": func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.run("one", 1, 0)
			w.find("one").Status.Conditions = nil
		},
		"a long status leaves it out": func(w *world, m *v1alpha1.NodeMaintenance) {
			w.run("one", 1, 0)
			w.find("one").Status.Conditions = nil
			m.Status.NodeStatuses = m.Status.NodeStatuses[1:]
		},
		"its pods are not known": func(w *world, _ *v1alpha1.NodeMaintenance) { delete(w.pods, "one") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, m := timelyNodes(t, "one", "two")
			w.leave("one", 0)
			w.passes(2)
			story(w, m)
			w.now = due
			d := w.pass().Maintenances[0]
			if d.GiveBack == nil || !cmp.Equal(d.GiveBack.Nodes, []v1alpha1.NodeReference{{Name: "two"}}) {
				t.Errorf("given back are %+v, want two", d.GiveBack)
			}
		})
	}
}

func TestDeadlineWithDrainedNodesOnlyIsMet(t *testing.T) {
	t.Parallel()
	w, m := timelyNodes(t, "one", "two")
	w.leave("one", 0)
	w.leave("two", 0)
	w.passes(2)
	w.atDeadline()
	wantHeld(t, w, "one", "two")
	wantEnd(t, m, drain, "False DeadlineMet", "none")
	w.run("two", 1, 0)
	w.passes(2)
	wantHeld(t, w, "one", "two")
	wantEnd(t, m, drain, "True WaitingForPods", "none")
}

func TestNothingIsGivenBackBeforeTheDeadlineIsCertain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *v1alpha1.NodeMaintenance){
		"the clock is skewed": func(w *world, _ *v1alpha1.NodeMaintenance) { w.clockSkewed = true },
		"it is postponed": func(_ *world, m *v1alpha1.NodeMaintenance) {
			m.Spec.Deadline.Time = metav1.NewTime(due.Add(time.Second))
		},
		"it waits from now on":  func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Deadline.OnDeadline = v1alpha1.DeadlineWait },
		"it is removed":         func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Deadline = nil },
		"the pods are unknown":  func(w *world, _ *v1alpha1.NodeMaintenance) { w.pods = map[string][]*corev1.Pod{} },
		"it is invalid":         func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Deadline.OnDeadline = "Explode" },
		"it is complete anyway": func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Stage = complete },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, m := timelyNodes(t, "one", "two")
			w.now = due
			change(w, m)
			w.pass()
			if late := w.pass().Maintenances[0].GiveBack; late != nil {
				t.Errorf("given back are %+v", late)
			}
		})
	}
}

// A node that joins after the deadline is not even cordoned.
func TestNodeThatJoinsAfterTheDeadlineStaysFree(t *testing.T) {
	t.Parallel()
	w, m := timelyNodes(t, "one", "two")
	w.leave("one", 0)
	w.passes(2)
	w.atDeadline()
	w.node("later")
	w.run("later", 1, 0)
	m.Spec.NodeSelector = named("one", "two", "later")
	if d := w.pass(); d.Maintenances[0].GiveBack == nil {
		t.Error("it is not given back at once")
	}
	w.passes(3)
	wantHeld(t, w, "one")
	wantEnd(t, m, drain, "True GivenBack", "none")
}

// A drain that begins after its deadline has passed ends before it touches a node.
func TestDrainThatBeginsAfterTheDeadlineTouchesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	m.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(due), OnDeadline: v1alpha1.DeadlineGiveBack}
	w.run("one", 1, 0)
	w.now = due.Add(time.Hour)
	w.pass()
	wantHeld(t, w)
	w.passes(3)
	wantHeld(t, w)
	wantEnd(t, m, complete, "none", "False DeadlinePassed")
}

// Its status says that a node was drained before anybody can see it.
func TestDrainedNodeIsRecordedBeforeItIsAnnounced(t *testing.T) {
	t.Parallel()
	w, _ := timelyNodes(t, "one", "two")
	w.leave("one", 0)
	if d := w.pass().Maintenances[0]; !d.Record || d.Status.NodeStatuses[0].DrainedTime == nil {
		t.Errorf("it is not recorded: %+v", d.Status.NodeStatuses)
	}
	if d := w.pass().Maintenances[0]; d.Record {
		t.Error("it is recorded again")
	}
}

func TestDeadlineGivesBackAsManyNodesAsTheSpecNames(t *testing.T) {
	t.Parallel()
	nodes := []string{"drained"}
	for n := range 260 {
		nodes = append(nodes, fmt.Sprintf("node-%03d", n))
	}
	w, m := timelyNodes(t, nodes...)
	giveBack(m, "node-000")
	w.leave("drained", 0)
	w.passes(2)
	w.atDeadline()
	if got := len(m.Spec.CompletedNodes); got != 256 {
		t.Errorf("%d nodes are given back, want 256", got)
	}
	wantHeld(t, w, "drained", "node-256", "node-257", "node-258", "node-259")
	wantEnd(t, m, drain, "True GivenBack", "none")
}

// A record that was copied with a manifest says nothing about the copy.
func TestGivenBackRecordOfAnotherMaintenanceIsIgnored(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"another's": `{"maintenanceUID":"other","time":"2026-03-01T08:00:00Z","count":1,"nodes":["one"]}`,
		"empty":     `{"maintenanceUID":"m","time":"2026-03-01T08:00:00Z","count":0,"nodes":[]}`,
		"no record": `{`,
	} {
		w := newWorld(t, "one")
		m := w.maintenance("m", drain, nil, "one")
		m.Annotations = map[string]string{v1alpha1.GivenBackAnnotation: record}
		w.passes(3)
		m.Spec.Stage = complete
		w.passes(2)
		if got := conditionOf(m, v1alpha1.ConditionSucceeded); got != "True Drained" {
			t.Errorf("%s: Succeeded is %s", name, got)
		}
	}
}
