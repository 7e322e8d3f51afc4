package maintenance_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func conditionOf(m *v1alpha1.NodeMaintenance, conditionType string) string {
	c := meta.FindStatusCondition(m.Status.Conditions, conditionType)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

func TestEndingIsRecordedForever(t *testing.T) {
	for name, test := range map[string]struct {
		stage  v1alpha1.NodeMaintenanceStage
		before func(*world)
		want   string
	}{
		"it was drained":      {drain, func(w *world) { w.leave("one", 0) }, "True Drained"},
		"pods were left":      {drain, func(*world) {}, "False Cancelled"},
		"one pod was left":    {drain, func(w *world) { w.pods["one"] = w.pods["one"][2:] }, "False Cancelled"},
		"it only cordoned":    {v1alpha1.StageCordon, func(*world) {}, "True NotDraining"},
		"it was only planned": {idle, func(*world) {}, "True NotDraining"},
		"it selected nothing": {drain, func(w *world) { w.maintenances[0].Spec.NodeSelector = named("elsewhere") }, "False Cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", test.stage, nil, "one")
			w.run("one", 3, 0)
			w.pass()
			test.before(w)
			w.pass()
			m.Spec.Stage = complete
			w.pass()
			summary := m.Status.Summary
			for range 3 { // Pods come back, and the ending stays.
				w.run("one", 1, 0)
				w.now = w.now.Add(time.Hour)
				w.pass()
				if got := conditionOf(m, v1alpha1.ConditionSucceeded); got != test.want || m.Status.Summary != summary {
					t.Errorf("Succeeded is %q and the summary %q, want %q and %q", got, m.Status.Summary, test.want, summary)
				}
			}
			if len(m.Finalizers) > 0 || len(m.Status.NodeStatuses) > 0 {
				t.Errorf("it does not end: %v, %v", m.Finalizers, lines(m))
			}
		})
	}
}

func TestUnrecordedEndingIsUnknown(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", complete, nil, "one")
	m.Finalizers = []string{v1alpha1.MaintenanceCompletionFinalizer}
	m.Status.StageStatuses = started(drain, complete)
	w.pass()
	if got := conditionOf(m, v1alpha1.ConditionSucceeded); got != "Unknown Unknown" || m.Status.Summary != "complete" {
		t.Errorf("Succeeded is %q and the summary %q", got, m.Status.Summary)
	}
}

func TestNodesThatWentAwayAreNotAMistakenSelector(t *testing.T) {
	for name, test := range map[string]struct {
		pods   int
		change func(*world)
		want   string
	}{
		"drained nodes were deleted":    {0, func(w *world) { w.nodes = nil }, "True NodesGone"},
		"nodes with pods were deleted":  {1, func(w *world) { w.nodes = nil }, "False NodesGone"},
		"drained nodes were given back": {0, func(w *world) { giveBack(w.maintenances[0], "one") }, "True NodesGone"},
		"the selector was changed": {0, func(w *world) {
			w.maintenances[0].Spec.NodeSelector, w.maintenances[0].Generation = named("elsewhere"), 2
		}, "False NoNodes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", drain, nil, "one")
			w.run("one", test.pods, 0)
			w.passes(2)
			test.change(w)
			for range 3 {
				w.pass()
				if got := conditionOf(m, v1alpha1.ConditionDrained); got != test.want {
					t.Errorf("Drained is %s, want %s", got, test.want)
				}
			}
		})
	}
}
