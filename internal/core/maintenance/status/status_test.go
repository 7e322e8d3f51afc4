package status_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

func TestEndingRecordsHowTheMaintenanceEnded(t *testing.T) {
	t.Parallel()
	drained := func(s metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionDrained, Status: s}}
	}
	for name, test := range map[string]struct {
		conditions         []metav1.Condition
		draining, recorded bool
		late, want         string
	}{
		"it was not in Drain":                       {nil, false, false, "", "True NotDraining"},
		"it was drained":                            {drained(metav1.ConditionTrue), true, false, "", "True Drained"},
		"it was not drained":                        {drained(metav1.ConditionFalse), true, false, "", "False Cancelled"},
		"... and an older manager has completed it": {drained(metav1.ConditionFalse), true, true, "", "False Cancelled"},
		"its deadline has given nodes back":         {drained(metav1.ConditionTrue), true, false, "late", "False DeadlinePassed"},
		"... before its drain was recorded":         {nil, false, false, "late", "False DeadlinePassed"},
		"nothing was said of it":                    {nil, true, false, "", "False Cancelled"},
		"... as an older manager has forgotten it":  {nil, true, true, "", "Unknown Unknown"},
		"it has ended before, and so it stays so": {
			[]metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Drained"}}, true, true, "late", "True Drained",
		},
	} {
		got := status.Ending(&v1alpha1.NodeMaintenanceStatus{Conditions: test.conditions}, test.draining, test.recorded, test.late)
		if is := string(got.Status) + " " + got.Reason; is != test.want {
			t.Errorf("%s: Succeeded is %s, want %s", name, is, test.want)
		}
	}
}

func TestOmittedNodesHaveTheTargetsOfTheLastOne(t *testing.T) {
	t.Parallel()
	last := []v1alpha1.DrainPlanEntry{{PodType: v1alpha1.PodTypeDefault, PodPriority: 7}}
	s := &v1alpha1.NodeMaintenanceStatus{NodeCount: 3, NodeStatuses: []v1alpha1.NodeMaintenanceNodeStatus{{}, {DrainTargets: last}}}
	if got := status.Omitted(s); len(got) != 1 || got[0].PodPriority != 7 {
		t.Errorf("targets are %+v, want those of the last listed node", got)
	}
	s.NodeCount = 2
	if got := status.Omitted(s); got != nil {
		t.Errorf("targets are %+v, want none: all nodes are listed", got)
	}
}
