package rollout_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/difference"
)

// A plan names the nodes of its NodeMaintenance that would wait, and no others.
func TestPlanNamesNodesThatWouldWaitForANodeBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	then(limited(forAll), requested("first", "a", "b"), admitted, requested("planned", "c"))(w)
	planned, _ := find(w.maintenances, "planned")
	waits := rollout.Waiting(*w.snapshot(), planned)
	difference.None(t, "nodes", []string{"c"}, slices.Sorted(maps.Keys(waits)))
	if strings.Contains(waits["c"], "planned") {
		t.Errorf("it waits for itself: %s", waits["c"])
	}
	planned = planned.DeepCopy()
	planned.Spec.NodeSelector = nil
	if waits := rollout.Waiting(*w.snapshot(), planned); len(waits) > 0 {
		t.Errorf("without a selector %v wait", waits)
	}
}

func TestSetOfNodeBudgetsIsEmptyIfItHoldsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	limited(forAll)(w)
	w.limitTo("rollouts")
	for name, test := range map[string]struct {
		set  nodebudget.Set
		want bool
	}{
		"none":        {nodebudget.Set{}, true},
		"of rollouts": {nodebudget.Compile(w.budgets[1:]), true},
		"of all":      {nodebudget.Compile([]*v1alpha1.NodeBudget{w.budgets[0]}), false},
		"unread":      {nodebudget.Unread("no answer"), false},
	} {
		if got := test.set.Empty(); got != test.want {
			t.Errorf("%s: empty is %v", name, got)
		}
	}
}
