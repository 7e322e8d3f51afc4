package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// overdue is a Machine each of whose steps may take a minute, an hour later, by a skewed
// clock.
func overdue(of func() lifecycle.Snapshot) func() lifecycle.Snapshot {
	return func() lifecycle.Snapshot {
		s := of()
		minute := int32(60)
		s.Machine.Spec.Deletion = v1alpha1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds: &minute, NodeVolumeDetachTimeoutSeconds: &minute, NodeDeletionTimeoutSeconds: &minute,
		}
		s.Now, s.ClockSkewed = after(3600), true
		return s
	}
}

// By a skewed clock no step of a deletion is given up. Everything else goes on.
func TestSkewedClockEndsNoStep(t *testing.T) {
	t.Parallel()
	waits := func(s *lifecycle.Snapshot) { s.Drain.Pods = []*corev1.Pod{pod("a")} }
	unreachable := func(s *lifecycle.Snapshot) {
		s.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		leaves := pod("a")
		leaves.DeletionTimestamp = at(60)
		s.Drain.Pods = []*corev1.Pod{leaves}
		s.Machine.Spec.Deletion = v1alpha1.MachineDeletionSpec{}
	}
	run(t, map[string]story{
		"a drain":                              {overdue(draining), waits, "DrainingNode, evict app/a", "", "DrainStarted"},
		"a drain whose pods cannot be read":    {overdue(draining), func(s *lifecycle.Snapshot) { s.DrainProblem = "no answer" }, "DrainingNode", "", "DrainError"},
		"a wait for volumes":                   {overdue(detaching), func(s *lifecycle.Snapshot) { mount(s, pod("a")) }, "WaitingForVolumeDetach, evict app/a", "", "VolumesAttached"},
		"a Node that cannot be deleted":        {overdue(leaving), func(s *lifecycle.Snapshot) { s.Failure = "forbidden" }, "DeletingNode, delete node", "", ""},
		"a pod of a Node that nobody hears of": {overdue(draining), unreachable, "DrainingNode, drain", "", "DrainStarted"},
		"... by the clock of its own cluster": {overdue(draining), func(s *lifecycle.Snapshot) {
			unreachable(s)
			s.ClockSkewed, s.Drain.Now, s.Drain.ClockSkewed = false, after(3600), true
		}, "DrainingNode, drain", "", "DrainStarted"},
		"a drain that is done ends as ever": {overdue(draining), nil, "WaitingForInfrastructureDeletion, record", "", "DrainStarted DrainCompleted VolumesDetached"},
		"the clock is trusted again": {overdue(draining), func(s *lifecycle.Snapshot) {
			waits(s)
			s.Machine.Status = lifecycle.Decide(*s).Status
			s.ClockSkewed = false
		}, "WaitingForInfrastructureDeletion, record", "", "DrainTimedOut VolumesDetached"},
	})
}
