package maintenance_test

import (
	"slices"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// The target has come far for one maintenance, and those that join begin before that:
// the one that asks for the most limits nobody.
func TestAMaintenanceIsLimitedByOneThatAsksForLess(t *testing.T) {
	w := newWorld(t, "one")
	w.maintenance("far", drain, []v1alpha1.DrainPlanEntry{entryFor("a", "Default", 100)}, "one")
	for _, app := range []string{"a", "b", "c"} {
		w.run("one", 1, 50, labelled("app", app))
	}
	w.told(nil, 2)
	w.maintenance("near", drain, []v1alpha1.DrainPlanEntry{entryFor("c", "Default", 50)}, "one")
	limited := w.maintenance("limited", drain, []v1alpha1.DrainPlanEntry{entryFor("b", "Default", 50)}, "one")
	w.told(nil, 2)
	w.expectStatus("all drain", limited, "one 1+2 Evacuating (limited by near) [Default 50 app=c, Default 100 app=a]")
}

// A maintenance that is itself kept from what another one asks for does not keep that
// one from it.
func TestAMaintenanceIsNotLimitedByOneThatAsksForTheSame(t *testing.T) {
	w := newWorld(t, "one")
	ruling := w.maintenance("ruling", drain, []v1alpha1.DrainPlanEntry{entryFor("c", "Default", 50), entryFor("a", "Default", 200)}, "one")
	w.run("one", 1, 200, labelled("app", "a"))
	w.told(nil, 2)
	w.expectStatus("alone", ruling, "one 0+1 Evacuating [Default 50 app=c, Default 200 app=a]")
	w.run("one", 1, 50, labelled("app", "c"))
	w.run("one", 1, 300, labelled("app", "d"))
	w.maintenance("same", drain, []v1alpha1.DrainPlanEntry{entryFor("b", "Default", 100), entryFor("a", "Default", 200)}, "one")
	limited := w.maintenance("limited", drain, []v1alpha1.DrainPlanEntry{entryFor("b", "Default", 100), entryFor("d", "Default", 300)}, "one")
	w.told(nil, 2)
	w.expectStatus("all drain", limited, "one 1+2 Evacuating (limited by ruling) [Default 50 app=c, Default 200 app=a]")
}

// Plans are compared by the pods that they select, not by the words in which they do.
func TestTheSameSelectorInOtherWordsIsTheSame(t *testing.T) {
	for name, test := range map[string]struct {
		older, younger []v1alpha1.DrainPlanEntry
	}{
		"one value": {
			[]v1alpha1.DrainPlanEntry{entryFor("x", "Default", 100)},
			[]v1alpha1.DrainPlanEntry{{PodPriority: 100, PodSelector: appIn("x")}},
		},
		"one value, the other way round": {
			[]v1alpha1.DrainPlanEntry{{PodPriority: 100, PodSelector: appIn("x")}},
			[]v1alpha1.DrainPlanEntry{entryFor("x", "Default", 100)},
		},
		"two values by two entries": {
			[]v1alpha1.DrainPlanEntry{entryFor("y", "Default", 100), entryFor("x", "Default", 100)},
			[]v1alpha1.DrainPlanEntry{{PodPriority: 100, PodSelector: appIn("x", "y")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			older := w.maintenance("older", drain, test.older, "one")
			w.run("one", 1, 100, labelled("app", "x"))
			w.run("one", 1, 500)
			w.told(nil, 2)
			younger := w.maintenance("younger", drain, test.younger, "one")
			if told := w.told(younger, 2); !slices.Equal(told, []string{"NodeMaintenance/younger StageStarted"}) {
				t.Errorf("told %v, want that it has begun", told)
			}
			for _, m := range []*v1alpha1.NodeMaintenance{older, younger} {
				if got := m.Status.NodeStatuses[0]; got.DrainMessage != "Evacuating" || got.FastForwardedBy != "" {
					t.Errorf("%s says %q and is fast-forwarded by %q", m.Name, got.DrainMessage, got.FastForwardedBy)
				}
			}
		})
	}
}
