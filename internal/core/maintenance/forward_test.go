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

// bothFar is a world in which an older and a younger maintenance have both come to
// the end of their plans on node one.
func bothFar(t *testing.T) (*world, *v1alpha1.NodeMaintenance) {
	w := newWorld(t, "one", "two", "new")
	w.maintenance("older", drain, []v1alpha1.DrainPlanEntry{entry("Default", 5000)}, "one")
	younger := w.maintenance("younger", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "one", "two")
	w.run("one", 1, 9000)
	w.told(nil, 2)
	return w, younger
}

// What a maintenance has reached itself is its own history, also where an older one
// is as far.
func TestAPlanThatNewPodsTakeBackIsNotFastForwarded(t *testing.T) {
	w, younger := bothFar(t)
	w.run("two", 1, 0)
	if told := w.told(younger, 2); len(told) > 0 {
		t.Errorf("told %v, want nothing", told)
	}
	w.expectStatus("taken back", younger, "one 0+1 Evacuating [Default 1000000000]", "two 0+1 Evacuating [Default 1000000000]")
}

func TestAPlanThatANewNodeTakesBackIsNotFastForwarded(t *testing.T) {
	w, younger := bothFar(t)
	w.run("new", 1, 0)
	younger.Spec.NodeSelector = named("one", "two", "new")
	if told := w.told(younger, 2); len(told) > 0 {
		t.Errorf("told %v, want nothing", told)
	}
	w.expectStatus("taken back", younger,
		"new 0+1 Evacuating [Default 1000]", "one 0+1 Evacuating [Default 1000000000]", "two 0+0 Drained. [Default 1000000000]")
}

// Older is who began to drain earlier, not who was created earlier.
func TestAMaintenanceThatWasPlannedForLongIsFastForwardedWhenItBegins(t *testing.T) {
	w := newWorld(t, "one", "two")
	planned := w.maintenance("planned", idle, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "one", "two")
	w.maintenance("urgent", drain, nil, "one")
	w.run("one", 1, 2000000000)
	w.run("two", 1, 0)
	w.told(nil, 2)

	planned.Spec.Stage = drain
	told := w.told(planned, 3)

	if diff := cmp.Diff([]string{"NodeMaintenance/planned StageStarted", "NodeMaintenance/planned FastForwarded"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	w.expectStatus("begun", planned,
		"one 0+1 Evacuating (fast-forwarded by older urgent) [Default 2000000000]", "two 0+1 Evacuating [Default 1000]")
	if got := planned.Status.NodeStatuses[0].FastForwardedBy; got != "urgent" {
		t.Errorf("fast-forwarded by %q, want urgent", got)
	}
	w.leave("two", 0)
	w.told(nil, 2)
	w.expectStatus("caught up", planned, "one 0+1 Evacuating [Default 2000000000]", "two 0+0 Drained. [Default 2000000000]")
	if got := planned.Status.NodeStatuses[0].FastForwardedBy; got != "" {
		t.Errorf("fast-forwarded by %q, want nobody", got)
	}
}

// The other way round: the one that was created later cannot forward one that is
// ahead of it in time.
func TestNobodyIsFastForwardedByAYoungerDrain(t *testing.T) {
	w := newWorld(t, "one", "two")
	first := w.maintenance("first", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "one", "two")
	w.run("one", 1, 9000)
	w.run("two", 1, 0)
	w.told(nil, 2)
	w.maintenance("second", drain, nil, "one")
	if told := w.told(first, 2); len(told) > 0 {
		t.Errorf("told %v, want nothing", told)
	}
	w.expectStatus("goes on", first, "one 1+0 Waiting for node two. [Default 1000]", "two 0+1 Evacuating [Default 1000]")
}

// A drain that is as old, but whose plan never selects what the target has come to,
// is not to blame for it.
func TestOnlyAPlanThatContainsTheEntryIsBlamed(t *testing.T) {
	w := newWorld(t, "one", "two")
	shallow := w.maintenance("shallow", drain, nil, "one")
	shallow.Spec.DrainDepth = v1alpha1.PodTypeDefault
	deep := w.maintenance("deep", drain, nil, "one")
	w.runners.DaemonSets = true
	w.run("one", 1, 0, ofDaemonSet)
	w.told(nil, 2)
	late := w.maintenance("late", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "one", "two")
	w.run("two", 1, 0)
	w.told(nil, 2)
	w.expectStatus("joined", late,
		"one 0+1 Evacuating (fast-forwarded by older deep) [Default 2147483647, DaemonSet 1000000000]", "two 0+1 Evacuating [Default 1000]")
	if deep.Status.NodeStatuses[0].FastForwardedBy != "" {
		t.Error("the older one is fast-forwarded")
	}
}

// Two plans come to other labels of the same priority: the pods of one wait for the
// plan of the other, though neither entry is greater.
func TestAPlanIsLimitedByOneThatSelectsOtherLabels(t *testing.T) {
	w := newWorld(t, "shared", "far", "own")
	x, y := entryFor("x", "Default", 100), entryFor("y", "Default", 100)
	w.maintenance("a", drain, []v1alpha1.DrainPlanEntry{x}, "shared", "far")
	b := w.maintenance("b", drain, []v1alpha1.DrainPlanEntry{y}, "shared", "own")
	w.run("far", 1, 0, labelled("app", "x"))
	w.run("shared", 1, 0, labelled("app", "y"))
	w.told(nil, 2)
	w.expectStatus("its only pod waits for another plan", b,
		"own 0+0 Drained. [Default 100 app=y]", "shared 1+0 Waiting for node far (a). [Default 100 app=x]")

	w.run("shared", 1, 0, labelled("app", "x"))
	w.told(nil, 1)
	w.expectStatus("pods of the other plan leave", b,
		"own 0+0 Drained. [Default 100 app=y]", "shared 2+0 Evacuating (limited by a) [Default 100 app=x]")
}

// New pods take the older drain back in its plan too, but nothing that it has recorded on
// the node.
func TestAFastForwardIsToldThoughTheOlderDrainIsBackInItsPlan(t *testing.T) {
	w := newWorld(t, "one", "two", "three")
	older := w.maintenance("older", drain, []v1alpha1.DrainPlanEntry{entry("Default", 2000)}, "one", "two")
	w.run("one", 1, 9000)
	w.told(nil, 2)
	w.run("two", 1, 0)
	w.told(nil, 1)
	w.expectStatus("back in its plan", older, "one 0+1 Evacuating [Default 1000000000]", "two 1+0 Evacuating [Default 1000000000]")

	joins := w.maintenance("joins", drain, []v1alpha1.DrainPlanEntry{entry("Default", 1000)}, "one", "three")
	w.run("three", 1, 0)
	told := w.told(joins, 3)

	if diff := cmp.Diff([]string{"NodeMaintenance/joins StageStarted", "NodeMaintenance/joins FastForwarded"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	w.expectStatus("joined", joins,
		"one 0+1 Evacuating (fast-forwarded by older older) [Default 1000000000]", "three 0+1 Evacuating [Default 1000]")
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
