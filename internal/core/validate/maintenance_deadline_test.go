package validate_test

import (
	"testing"
	"time"

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

func givesBack(stage v1alpha1.NodeMaintenanceStage) *v1alpha1.NodeMaintenance {
	return until(rack(stage), v1alpha1.DeadlineGiveBack)
}

func waits(stage v1alpha1.NodeMaintenanceStage) *v1alpha1.NodeMaintenance {
	return until(rack(stage), v1alpha1.DeadlineWait)
}

func changed(m *v1alpha1.NodeMaintenance, change func(*v1alpha1.NodeMaintenance)) *v1alpha1.NodeMaintenance {
	change(m)
	return m
}

func TestDeadlineThatHasPassedIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		before   time.Duration
		skewed   bool
		refused  bool
		warns    int
	}{
		"an hour before":                 {new: deletes("Drain"), before: time.Hour, warns: 1},
		"a minute before":                {new: deletes("Drain"), before: time.Minute, warns: 1},
		"it has passed":                  {new: deletes("Drain"), refused: true},
		"it has passed, and is idle":     {new: deletes("Idle"), refused: true},
		"the clock is skewed":            {new: deletes("Drain"), skewed: true, warns: 1},
		"it waits":                       {new: waits("Drain"), before: time.Hour},
		"it waits and has passed":        {new: waits("Drain"), warns: 1},
		"it gives back":                  {new: givesBack("Drain"), before: time.Hour},
		"it gives back all at once":      {new: givesBack("Drain"), refused: true},
		"... by a skewed clock":          {new: givesBack("Drain"), skewed: true},
		"it is to give back now":         {old: waits("Drain"), new: givesBack("Drain"), refused: true},
		"it drains to be given back":     {old: givesBack("Cordon"), new: givesBack("Drain"), refused: true},
		"it gives back, and is labelled": {old: givesBack("Drain"), new: changed(givesBack("Drain"), func(m *v1alpha1.NodeMaintenance) { m.Labels = map[string]string{"a": "b"} })},
		"it has given back":              {old: givesBack("Drain"), new: givesBack("Complete")},
		"it drains when it has passed":   {old: deletes("Cordon"), new: deletes("Drain"), refused: true},
		"it drains before":               {old: deletes("Cordon"), new: deletes("Drain"), before: time.Hour, warns: 1},
		"it is to delete now":            {old: waits("Drain"), new: deletes("Drain"), refused: true},
		"it gets a deadline":             {old: rack("Drain"), new: deletes("Drain"), refused: true},
		"it gets other nodes":            {old: deletes("Drain"), new: until(of("Drain", "rack", "2"), v1alpha1.DeadlineDelete), refused: true},
		"it goes deeper":                 {old: deletes("Drain"), new: changed(deletes("Drain"), func(m *v1alpha1.NodeMaintenance) { m.Spec.DrainDepth = "Static" }), refused: true},
		"it keeps nothing in place":      {old: inPlace(deletes("Drain"), 60, "Wait"), new: deletes("Drain"), refused: true},
		"somebody labels it":             {old: deletes("Drain"), new: changed(deletes("Drain"), func(m *v1alpha1.NodeMaintenance) { m.Labels = map[string]string{"a": "b"} })},
		"it waits from now on":           {old: deletes("Drain"), new: waits("Drain"), warns: 1},
		"it has no deadline from now on": {old: deletes("Drain"), new: rack("Drain")},
		"it is complete":                 {old: deletes("Drain"), new: deletes("Complete")},
		"it is deleted":                  {old: deletes("Drain")},
	} {
		t.Run(name, func(t *testing.T) {
			change := validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: fleet(), Now: skew.Earliest(evening.Add(-tt.before), tt.skewed)}
			expectRefusal(t, tt.refused, change.DeadlineRefusal())
			if !tt.refused {
				expectWarnings(t, tt.warns, change.Warnings())
			}
		})
	}
}
