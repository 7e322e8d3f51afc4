package rollout_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// startersOf returns the nodes that a decision starts, with the rollout that does.
func startersOf(t *testing.T, d *rollout.Decision) map[string]string {
	t.Helper()
	by := map[string]string{}
	for i := range d.Rollouts {
		for _, m := range d.Rollouts[i].Starts {
			node := nodeOf(m)
			if by[node] != "" {
				t.Errorf("node %s is started by %s and by %s", node, by[node], d.Rollouts[i].Rollout.Name)
			}
			by[node] = d.Rollouts[i].Rollout.Name
		}
	}
	return by
}

// anyNumber lets a rollout start all of its nodes at once.
func anyNumber(spec *v1alpha1.NodeRolloutSpec) { spec.MaxUnavailable = new(intstr.FromString("100%")) }

// A label that selects it later takes no control plane node into a rollout that excludes these.
func TestControlPlaneNodeThatEntersASelectionIsNotStarted(t *testing.T) {
	w := newWorld(t, "a")
	w.join("cp", labelled(controlPlaneLabel, ""), labelled(poolLabel, "control"))
	w.start("kernel", anyNumber)
	w.decide()
	w.editNode("cp", func(node *corev1.Node) { node.Labels[poolLabel] = "a" })
	w.now = w.now.Add(time.Minute)
	if by := startersOf(t, w.decide()); by["cp"] != "" {
		t.Errorf("the control plane node is started by %s", by["cp"])
	}
	r, _ := find(w.rollouts, "kernel")
	if r.Status.NodeCount != 1 {
		t.Errorf("the rollout has %d nodes, want the worker only", r.Status.NodeCount)
	}
}

// A NodeMaintenance that bears the label of a rollout, but not an attempt of this rollout and this node,
// makes no node done and none failed. A policy refuses these marks as well.
func TestForgedAttemptCountsForNothing(t *testing.T) {
	for name, forge := range map[string]func(*rollout.Attempt){
		"of another rollout":   func(a *rollout.Attempt) { a.UID = "another" },
		"of no rollout":        func(a *rollout.Attempt) { a.UID = "" },
		"of an earlier node":   func(a *rollout.Attempt) { a.NodeUID = "another" },
		"of an earlier target": func(a *rollout.Attempt) { a.Target = "another" },
		"that cannot be read":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a")
			w.start("kernel", func(spec *v1alpha1.NodeRolloutSpec) { spec.Target = nil })
			d := rollout.Decide(w.snapshot())
			m := d.Rollouts[0].Starts[0].DeepCopy()
			m.Name, m.Spec.Stage, m.Annotations[v1alpha1.RolloutAttemptAnnotation] = "forged", v1alpha1.StageComplete, forged(t, m, forge)
			m.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete}}
			setCondition(w, m, v1alpha1.ConditionSucceeded, true, v1alpha1.ReasonReturned)
			w.maintenances = append(w.maintenances, m)
			after := rollout.Decide(w.snapshot())
			if status := after.Rollouts[0].Status; status.DoneCount+status.FailedCount != 0 || len(after.Rollouts[0].Starts) != 1 {
				t.Errorf("done %d, failed %d, %d starts; want the node started", status.DoneCount, status.FailedCount, len(after.Rollouts[0].Starts))
			}
		})
	}
}

// forged returns the attempt of a NodeMaintenance with a change; nil makes it unreadable.
func forged(t *testing.T, m *v1alpha1.NodeMaintenance, change func(*rollout.Attempt)) string {
	t.Helper()
	if change == nil {
		return "}"
	}
	var attempt rollout.Attempt
	if err := json.Unmarshal([]byte(m.Annotations[v1alpha1.RolloutAttemptAnnotation]), &attempt); err != nil {
		t.Fatal(err)
	}
	change(&attempt)
	text, err := json.Marshal(attempt)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// 200 rollouts that select the same nodes start each once, and each status stays small.
func TestManyRolloutsOverTheSameNodesStartEachOnce(t *testing.T) {
	w := newWorld(t)
	for i := range 100 {
		w.join(fmt.Sprintf("n-%03d", i))
	}
	for i := range 200 {
		w.start(fmt.Sprintf("r-%03d", i), anyNumber)
	}
	d := rollout.Decide(w.snapshot())
	if by := startersOf(t, d); len(by) != 100 {
		t.Errorf("%d nodes are started, want 100", len(by))
	}
	w.apply(d, never)
	for range 2 {
		w.now = w.now.Add(time.Minute)
		if by := startersOf(t, w.decide()); len(by) != 0 {
			t.Errorf("started again: %v", by)
		}
	}
	for _, m := range w.maintenances {
		if latest := w.of(nodeOf(m)); latest != m {
			t.Errorf("node %s has the NodeMaintenances %s and %s", nodeOf(m), m.Name, latest.Name)
		}
	}
}

// 32 windows and 32 blackouts, all different and overlapping, are one calendar.
func TestFullCalendarIsDecided(t *testing.T) {
	w := newWorld(t, "a")
	w.start("kernel", func(spec *v1alpha1.NodeRolloutSpec) {
		for i := range 32 {
			zone := []string{"Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia"}[i%4]
			from := fmt.Sprintf("%02d:%02d", i%24, 59-i)
			spec.Windows = append(spec.Windows, v1alpha1.MaintenanceWindow{Days: []v1alpha1.Weekday{"tue"}, From: from, To: from, TimeZone: zone})
			start := w.now.Add(time.Duration(i) * time.Hour)
			spec.Blackouts = append(spec.Blackouts, v1alpha1.Blackout{StartTime: metav1.NewTime(start), EndTime: metav1.NewTime(start.Add(90 * time.Minute))})
		}
	})
	var reasons []string
	for range 100 {
		d := w.decide()
		if len(d.Rollouts[0].Starts) > 0 {
			return
		}
		reasons = append(reasons, d.Rollouts[0].Status.Waiting[0].Reason)
		if !d.WakeTime.After(w.now) {
			t.Fatalf("the wake time is %s, it is %s", d.WakeTime, w.now)
		}
		w.now = d.WakeTime
	}
	t.Errorf("no node was started: %v", reasons)
}

// What people write on a rollout is not copied to its NodeMaintenances, but for what its spec says.
func TestAnnotationsOfARolloutAreNotCopied(t *testing.T) {
	w := newWorld(t, "a")
	w.start("kernel")
	edit(w, w.rollouts, "kernel", func(r *v1alpha1.NodeRollout) {
		r.Annotations["example.com/huge"] = strings.Repeat("x", 200<<10)
		r.Annotations[v1alpha1.HandedOverAnnotation] = "forged"
		r.Labels["example.com/team"] = "a"
		r.Labels[v1alpha1.CreatedByLabel] = v1alpha1.CreatedByNodeAgent
		r.Annotations[v1alpha1.RequestedByAnnotation] = "anna"
	})
	m := rollout.Decide(w.snapshot()).Rollouts[0].Starts[0]
	if len(m.Annotations) != 2 || m.Annotations[v1alpha1.RequestedByAnnotation] != "anna" || len(m.Labels) != 1 {
		t.Errorf("labels %v and %d annotations are copied", m.Labels, len(m.Annotations))
	}
}

// What nodes, users and the API server say is bounded and printable in the status, and the lists are short.
func TestStatusOfHostileNodesIsBounded(t *testing.T) {
	const maxStatus = 256 << 10
	hostile := "\x1b[2J\nnode is done\r" + strings.Repeat("é", 3000)
	w := newWorld(t)
	for i := range 400 {
		w.join(fmt.Sprintf("n-%03d.%s", i, strings.Repeat("long-name.", 23)), func(node *corev1.Node) {
			node.Labels[zoneLabel] = fmt.Sprintf("zone-%d", i)
			setReady(node, i%5 > 0)
			node.Status.Conditions[0].Reason, node.Status.Conditions[0].Message = hostile, hostile
			node.Status.NodeInfo.KernelVersion = hostile
		})
	}
	w.start("kernel", anyNumber, func(spec *v1alpha1.NodeRolloutSpec) { spec.Failure.MaxFailures = new(intstr.FromString("100%")) })
	first := rollout.Decide(w.snapshot())
	for _, m := range first.Rollouts[0].Starts[:50] {
		w.refused[m.Name] = hostile
	}
	w.decide()
	for i, m := range w.maintenances {
		w.editMaintenance(m.Name, func(m *v1alpha1.NodeMaintenance) {
			setCondition(w, m, v1alpha1.ConditionDrained, i%2 == 0, hostile)
			m.Status.Summary, m.Status.Conditions[0].Message = hostile, hostile
			if i%3 == 0 {
				m.Spec.Stage = v1alpha1.StageComplete
				m.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete}}
			}
		})
	}
	w.now = w.now.Add(time.Minute)
	status := rollout.Decide(w.snapshot()).Rollouts[0].Status
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > maxStatus || len(status.Working) > 256 || len(status.Failed) > 20 || len(status.Waiting) > 20 {
		t.Errorf("%d bytes, %d working, %d failed, %d groups that wait", len(text), len(status.Working), len(status.Failed), len(status.Waiting))
	}
	for _, odd := range []string{"\\u001b", "\\n", "\\r"} {
		if strings.Contains(string(text), odd) {
			t.Errorf("the status has the characters %s", odd)
		}
	}
}
