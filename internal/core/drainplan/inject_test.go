package drainplan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

func TestInjectAddsTheDefaultsInTheirPlaces(t *testing.T) {
	defaults := short(drainplan.Defaults())
	for name, test := range map[string]struct {
		plan []v1alpha1.DrainPlanEntry
		want []string
	}{
		"no plan":            {nil, defaults},
		"the twelve entries": {drainplan.Defaults(), defaults},
		"entries in between": {
			[]v1alpha1.DrainPlanEntry{entry("Default", 5000), entryFor("db", "Default", 1000000000), entry("Static", 7)},
			append(append([]string{"Default 5000", "Default 1000000000 app=db"}, defaults[:8]...), append([]string{"Static 7"}, defaults[8:]...)...),
		},
		"a selector that selects all pods is as good as none": {
			[]v1alpha1.DrainPlanEntry{{PodType: "Default", PodPriority: 1000000000, PodSelector: &metav1.LabelSelector{}}},
			append([]string{"Default 1000000000 <none>"}, defaults[1:]...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := drainplan.Inject(test.plan)
			if diff := cmp.Diff(test.want, short(got)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, drainplan.Inject(got)); diff != "" {
				t.Errorf("injecting again changes it:\n%s", diff)
			}
			if diff := cmp.Diff(drainplan.Normalise(test.plan), drainplan.Normalise(got)); diff != "" {
				t.Errorf("a pass reads another plan:\n%s", diff)
			}
		})
	}
}

func TestInjectPassesInvalidTemplatesOn(t *testing.T) {
	var long []v1alpha1.DrainPlanEntry
	for i := range 53 {
		long = append(long, entry("Default", int32(i)))
	}
	for name, plan := range map[string][]v1alpha1.DrainPlanEntry{
		"wrong order of types":                       {entry("DaemonSet", 1), entry("Default", 2)},
		"wrong order of priorities":                  {entry("Default", 2), entry("Default", 1)},
		"the entry without a selector first":         {entry("Default", 1), entryFor("a", "Default", 1)},
		"a duplicate":                                {entry("Default", 1), entry("Default", 1)},
		"so many that there is no room for defaults": long,
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(plan, drainplan.Inject(plan)); diff != "" {
				t.Errorf("the plan was changed (-want +got):\n%s", diff)
			}
		})
	}
	if got := len(drainplan.Inject(long[1:])); got != 64 {
		t.Errorf("52 entries became %d, want 64", got)
	}
}
