package maintenance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func conditionOf(m *v1alpha1.NodeMaintenance, conditionType string) string {
	c := meta.FindStatusCondition(m.Status.Conditions, conditionType)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func TestHowAMaintenanceHasEndedIsSaidForEver(t *testing.T) {
	for name, test := range map[string]struct {
		stage         v1alpha1.NodeMaintenanceStage
		before        func(*world)
		want, summary string
	}{
		"it was drained": {
			drain, func(w *world) { w.leave("one", 0) },
			"True Drained: Complete, was drained.", "complete, was drained",
		},
		"pods were left": {
			drain, func(*world) {},
			"False Cancelled: Cancelled, 3 pods were left.", "cancelled, 3 pods were left",
		},
		"one pod was left": {
			drain, func(w *world) { w.pods["one"] = w.pods["one"][2:] },
			"False Cancelled: Cancelled, 1 pod was left.", "cancelled, 1 pod was left",
		},
		"it only cordoned": {
			v1alpha1.StageCordon, func(*world) {},
			"True NotDraining: Complete, was not in stage Drain.", "complete, was not in stage Drain",
		},
		"it was only planned": {
			idle, func(*world) {},
			"True NotDraining: Complete, was not in stage Drain.", "complete, was not in stage Drain",
		},
		"it selected nothing": {
			drain, func(w *world) { w.maintenances[0].Spec.NodeSelector = named("elsewhere") },
			"False Cancelled: Cancelled, no node was selected.", "cancelled, no node was selected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", test.stage, nil, "one")
			w.run("one", 3, 0)
			w.pass()
			test.before(w)
			w.pass()
			m.Spec.Stage = complete
			for n := range 4 {
				w.pass()
				// Whoever looks later finds the same, though pods come back.
				w.run("one", 1, 0)
				w.now = w.now.Add(time.Hour)
				if got := conditionOf(m, v1alpha1.ConditionSucceeded); got != test.want || m.Status.Summary != test.summary {
					t.Errorf("pass %d: Succeeded is %q and the summary %q, want %q and %q", n, got, m.Status.Summary, test.want, test.summary)
				}
			}
			if len(m.Finalizers) > 0 || len(m.Status.NodeStatuses) > 0 {
				t.Errorf("it does not end: %v, %v", m.Finalizers, lines(m))
			}
		})
	}
}

// The manager dies after each write: what it forgets is in the status before.
func TestACancellationIsRecordedBeforeItsPodsAreForgotten(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	w.run("one", 2, 0)
	w.pass()
	m.Spec.Stage = complete
	d := w.pass().Maintenances[0]
	if !d.Record || len(d.Status.NodeStatuses) > 0 {
		t.Errorf("record is %v and the nodes are %v, want it recorded with nothing but the ending", d.Record, linesOf(d.Status))
	}
	if got := conditionOf(m, v1alpha1.ConditionSucceeded); got != "False Cancelled: Cancelled, 2 pods were left." {
		t.Errorf("Succeeded is %q", got)
	}
}

func TestAnEndingThatNobodyHasRecordedIsUnknown(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", complete, nil, "one")
	m.Finalizers = []string{v1alpha1.MaintenanceCompletionFinalizer}
	m.Status.StageStatuses = started(drain, complete)
	w.pass()
	if got := conditionOf(m, v1alpha1.ConditionSucceeded); got != "Unknown Unknown: Complete." || m.Status.Summary != "complete" {
		t.Errorf("Succeeded is %q and the summary %q", got, m.Status.Summary)
	}
}

func TestNodesThatWentAwayAreNotAMistakenSelector(t *testing.T) {
	const (
		drainedBefore = "True NodesGone: The nodes that spec.nodeSelector matched are gone, bear other labels or were given back; they had been drained."
		notDrained    = "False NodesGone: The nodes that spec.nodeSelector matched are gone, bear other labels or were given back; they had not been drained."
		mistaken      = "False NoNodes: spec.nodeSelector matches no node, so nothing is drained. See the labels of the nodes: kubectl get nodes --show-labels"
	)
	for name, test := range map[string]struct {
		pods   int
		change func(*world)
		want   string
	}{
		"drained nodes were deleted":   {0, func(w *world) { w.nodes = nil }, drainedBefore},
		"nodes with pods were deleted": {1, func(w *world) { w.nodes = nil }, notDrained},
		"drained nodes were given back": {0, func(w *world) {
			giveBack(w.maintenances[0], "one")
		}, drainedBefore},
		"the selector was changed": {0, func(w *world) {
			w.maintenances[0].Spec.NodeSelector, w.maintenances[0].Generation = named("elsewhere"), 2
		}, mistaken},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", drain, nil, "one")
			w.run("one", test.pods, 0)
			w.pass()
			w.pass()
			test.change(w)
			for range 3 {
				w.pass()
				if diff := cmp.Diff(test.want, conditionOf(m, v1alpha1.ConditionDrained)); diff != "" {
					t.Errorf("Drained (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestNodesAreListedAndStagesRecordedFromTheFirstOn(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", idle, nil, "one", "two")
	w.run("one", 1, 0)
	for _, step := range []struct {
		stage  v1alpha1.NodeMaintenanceStage
		lines  []string
		stages string
	}{
		{idle, []string{"one 0+0  []", "two 0+0  []"}, "[Idle]"},
		{drain, []string{"one 0+1 Evacuating [Default 1000000000]", "two 0+0 Drained. [Default 1000000000]"}, "[Idle Cordon Drain]"},
		{complete, nil, "[Idle Cordon Drain Complete]"},
	} {
		m.Spec.Stage = step.stage
		w.pass()
		w.pass()
		var stages []v1alpha1.NodeMaintenanceStage
		for _, s := range m.Status.StageStatuses {
			stages = append(stages, s.Name)
		}
		if got := fmt.Sprint(stages); got != step.stages {
			t.Errorf("stages are %s, want %s", got, step.stages)
		}
		if diff := cmp.Diff(step.lines, lines(m)); diff != "" {
			t.Errorf("nodes in %s (-want +got):\n%s", step.stage, diff)
		}
	}
}

// Who uncordons a node during its maintenance wants it back schedulable, also if
// somebody had cordoned it before.
func TestAPersonsUncordonIsKeptInMindToTheEnd(t *testing.T) {
	for name, test := range map[string]struct {
		seen          bool
		forget        func(*corev1.Node)
		unschedulable bool
	}{
		"in the middle":   {seen: true, forget: func(*corev1.Node) {}},
		"at the very end": {forget: func(*corev1.Node) {}},
		"nobody knows what it was": {
			seen: true, unschedulable: true,
			forget: func(node *corev1.Node) {
				node.Annotations[v1alpha1.CordonAnnotation] = `{"wasUnschedulable":true,"unknown":true,"holders":["m"]}`
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			node := w.find("one")
			node.Spec.Unschedulable = true
			m := w.maintenance("m", v1alpha1.StageCordon, nil, "one")
			w.pass()
			test.forget(node)
			node.Spec.Unschedulable = false
			if test.seen {
				w.pass()
			}
			if node.Spec.Unschedulable != test.seen {
				t.Error("the node is not cordoned again during its maintenance")
			}
			m.Spec.Stage = complete
			for range 3 {
				w.pass()
			}
			if node.Spec.Unschedulable != test.unschedulable {
				t.Errorf("at the end the node is unschedulable: %v, want %v", node.Spec.Unschedulable, test.unschedulable)
			}
		})
	}
}
