package maintenance_test

import (
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
