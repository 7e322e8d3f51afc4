package validate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/skew"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// evening is the deadline of every maintenance here.
var evening = time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)

func until(m *v1alpha1.NodeMaintenance, action v1alpha1.DeadlineAction) *v1alpha1.NodeMaintenance {
	m.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(evening), OnDeadline: action, DeleteBeforeSeconds: 60}
	return m
}

func rack(stage v1alpha1.NodeMaintenanceStage) *v1alpha1.NodeMaintenance {
	return of(stage, "rack", "1")
}

func deletes(stage v1alpha1.NodeMaintenanceStage) *v1alpha1.NodeMaintenance {
	return until(rack(stage), v1alpha1.DeadlineDelete)
}

func waits(stage v1alpha1.NodeMaintenanceStage) *v1alpha1.NodeMaintenance {
	return until(rack(stage), v1alpha1.DeadlineWait)
}

func changed(m *v1alpha1.NodeMaintenance, change func(*v1alpha1.NodeMaintenance)) *v1alpha1.NodeMaintenance {
	change(m)
	return m
}

func TestDeadlinesThatCannotBeMeant(t *testing.T) {
	const (
		passed = "spec.deadline.time 2026-03-01T22:00:00Z has passed (it is 2026-03-01T22:00:00Z), and with spec.deadline.onDeadline Delete all pods of the selected nodes " +
			"would be deleted at once: set spec.deadline.time to a time that is still to come, or spec.deadline.onDeadline to Wait"
		warned = "spec.deadline.onDeadline is Delete: pods that are left at 2026-03-01T21:59:00Z, 60 seconds (deleteBeforeSeconds) before the time, are deleted past their " +
			"PodDisruptionBudgets"
		atOnce = "spec.deadline: less than 60 seconds (deleteBeforeSeconds) are left until 2026-03-01T22:00:00Z, so that pods are deleted past their " +
			"PodDisruptionBudgets as soon as the drain begins"
		late = "spec.deadline.time 2026-03-01T22:00:00Z has passed (it is 2026-03-01T22:00:00Z); nothing is deleted, as spec.deadline.onDeadline is Wait"
	)
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		before   time.Duration
		skewed   bool
		refused  string
		warns    string
	}{
		"an hour before":                 {new: deletes("Drain"), before: time.Hour, warns: warned},
		"a minute before":                {new: deletes("Drain"), before: time.Minute, warns: atOnce},
		"it has passed":                  {new: deletes("Drain"), refused: passed},
		"it has passed, and is idle":     {new: deletes("Idle"), refused: passed},
		"the clock is skewed":            {new: deletes("Drain"), skewed: true, warns: warned},
		"it waits":                       {new: waits("Drain"), before: time.Hour},
		"it waits and has passed":        {new: waits("Drain"), warns: late},
		"it drains when it has passed":   {old: deletes("Cordon"), new: deletes("Drain"), refused: passed},
		"it drains before":               {old: deletes("Cordon"), new: deletes("Drain"), before: time.Hour, warns: warned},
		"it is to delete now":            {old: waits("Drain"), new: deletes("Drain"), refused: passed},
		"it gets a deadline":             {old: rack("Drain"), new: deletes("Drain"), refused: passed},
		"it gets other nodes":            {old: deletes("Drain"), new: until(of("Drain", "rack", "2"), v1alpha1.DeadlineDelete), refused: passed},
		"it goes deeper":                 {old: deletes("Drain"), new: changed(deletes("Drain"), func(m *v1alpha1.NodeMaintenance) { m.Spec.DrainDepth = "Static" }), refused: passed},
		"it keeps nothing in place":      {old: inPlace(deletes("Drain"), 60, "Wait"), new: deletes("Drain"), refused: passed},
		"somebody labels it":             {old: deletes("Drain"), new: changed(deletes("Drain"), func(m *v1alpha1.NodeMaintenance) { m.Labels = map[string]string{"a": "b"} })},
		"it waits from now on":           {old: deletes("Drain"), new: waits("Drain"), warns: late},
		"it has no deadline from now on": {old: deletes("Drain"), new: rack("Drain")},
		"it is complete":                 {old: deletes("Drain"), new: deletes("Complete")},
		"it is deleted":                  {old: deletes("Drain")},
	} {
		t.Run(name, func(t *testing.T) {
			change := validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: fleet(), Now: skew.Earliest(evening.Add(-tt.before), tt.skewed)}
			if diff := cmp.Diff(tt.refused, change.DeadlineRefusal()); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if tt.refused != "" {
				return
			}
			var want []string
			if tt.warns != "" {
				want = []string{tt.warns}
			}
			if diff := cmp.Diff(want, change.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
