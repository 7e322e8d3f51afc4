package maintenance_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// told runs some passes and returns the events of a maintenance.
func (w *world) told(m *v1alpha1.NodeMaintenance, passes int) []string {
	var all []string
	for range passes {
		for _, d := range w.pass().Maintenances {
			if d.Maintenance == m {
				all = append(all, reasons(d.Events)...)
			}
		}
		w.now = w.now.Add(time.Minute)
	}
	return all
}

func (w *world) expectStatus(what string, m *v1alpha1.NodeMaintenance, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, lines(m)); diff != "" {
		w.t.Errorf("%s: %s (-want +got):\n%s", what, m.Name, diff)
	}
}

// A deadline takes a node further than the plan of its maintenance has come.
func TestADeadlineOfAnOlderDrainFastForwards(t *testing.T) {
	w := newWorld(t, "one", "two", "three")
	older := w.maintenance("older", drain, []v1alpha1.DrainPlanEntry{entry("Default", 2000)}, "one", "two")
	older.Spec.Deadline = &v1alpha1.Deadline{Time: *metaTime(w.now.Add(10 * time.Minute)), OnDeadline: v1alpha1.DeadlineDelete}
	younger := w.maintenance("younger", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "one", "three")
	w.run("one", 1, 9000)
	w.run("two", 1, 0)
	w.run("three", 1, 0)
	w.told(nil, 3)
	w.now = older.Spec.Deadline.Time.Time
	told := w.told(younger, 2)

	if diff := cmp.Diff([]string{"NodeMaintenance/younger FastForwarded", "NodeMaintenance/younger Blocked", "Node/one Blocked", "Pod/pod-0001 Blocked"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if got := younger.Status.NodeStatuses[0].FastForwardedBy; got != "older" {
		t.Errorf("fast-forwarded by %q, want older", got)
	}
}

// What a drain that is over has left behind becomes the history of those that go on.
func TestADrainThatIsOverFastForwardsNobody(t *testing.T) {
	for name, test := range map[string]struct {
		ends func(w *world, second *v1alpha1.NodeMaintenance)
		want string
	}{
		"complete":     {func(_ *world, second *v1alpha1.NodeMaintenance) { second.Spec.Stage = v1alpha1.StageComplete }, "first"},
		"off the node": {func(_ *world, second *v1alpha1.NodeMaintenance) { second.Spec.NodeSelector = named("else") }, "first"},
		"all complete": {func(w *world, second *v1alpha1.NodeMaintenance) {
			second.Spec.Stage, w.maintenances[0].Spec.Stage = v1alpha1.StageComplete, v1alpha1.StageComplete
		}, ""},
		"made again": {func(w *world, second *v1alpha1.NodeMaintenance) {
			w.maintenances = slices.Delete(w.maintenances, 0, 2)
			again := w.maintenance(second.Name, drain, nil, "one")
			again.CreationTimestamp = *metaTime(w.now)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one", "two", "else")
			w.maintenance("first", drain, []v1alpha1.DrainPlanEntry{entry("Default", 5000)}, "one")
			second := w.maintenance("second", drain, []v1alpha1.DrainPlanEntry{entry("Default", 8000)}, "one")
			w.run("one", 1, 8000)
			w.told(nil, 2)
			third := w.maintenance("third", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "one", "two")
			w.run("two", 1, 0)
			w.told(nil, 2)
			w.expectStatus("joined", third, "one 0+1 Evacuating (fast-forwarded by older second) [Default 8000]", "two 0+1 Evacuating [Default 1000]")

			test.ends(w, second)
			if told := w.told(third, 3); len(told) > 0 {
				t.Errorf("told %v, want nothing", told)
			}
			if got := third.Status.NodeStatuses[0].FastForwardedBy; got != test.want {
				t.Errorf("fast-forwarded by %q, want %q", got, test.want)
			}
		})
	}
}
