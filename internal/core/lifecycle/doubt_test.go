package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

const wrongClock = "The manager's clock is wrong: set it."

// overdue is a Machine each of whose steps may take a minute, an hour later, by a
// clock that is not believed.
func overdue(of func() lifecycle.Snapshot) func() lifecycle.Snapshot {
	return func() lifecycle.Snapshot {
		s := of()
		minute := int32(60)
		s.Machine.Spec.Deletion = v1alpha1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds: &minute, NodeVolumeDetachTimeoutSeconds: &minute, NodeDeletionTimeoutSeconds: &minute,
		}
		s.Now, s.Doubt = after(3600), wrongClock
		return s
	}
}

// By a clock that is not believed no step of a deletion is given up, which is told in a
// condition. Everything else goes on.
func TestADoubtfulClockEndsNoStep(t *testing.T) {
	t.Parallel()
	skewed := func(what string) map[string]string {
		return map[string]string{v1alpha1.ConditionClockSkewed: "True/ClockSkewed: " + what + " goes on, though its time seems to be over. " + wrongClock}
	}
	unreachable := func(s *lifecycle.Snapshot) {
		s.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		leaves := pod("a")
		leaves.DeletionTimestamp = at(60)
		s.Drain.Pods = []*corev1.Pod{leaves}
	}
	run(t, map[string]story{
		"a drain": {
			of: overdue(draining), change: func(s *lifecycle.Snapshot) { s.Drain.Pods = []*corev1.Pod{pod("a")} },
			does: "DrainingNode, evict app/a", says: skewed("Draining Node node-1"), events: []string{"DrainStarted"},
		},
		"a drain whose pods cannot be read": {
			of: overdue(draining), change: func(s *lifecycle.Snapshot) { s.DrainProblem = "no answer" },
			does: "DrainingNode", says: skewed("Draining Node node-1"), events: []string{"DrainError"},
		},
		"a wait for volumes": {
			of: overdue(detaching), change: func(s *lifecycle.Snapshot) { mount(s, pod("a")) },
			does: "WaitingForVolumeDetach, evict app/a", says: skewed("Waiting for the volumes of Node node-1"), events: []string{"VolumesAttached"},
		},
		"a Node that cannot be deleted": {
			of: overdue(leaving), change: func(s *lifecycle.Snapshot) { s.Failure = "forbidden" },
			does: "DeletingNode, delete node", says: skewed("Deleting Node node-1"),
		},
		"a pod of a Node that nobody hears of": {
			of: overdue(draining), change: func(s *lifecycle.Snapshot) {
				unreachable(s)
				s.Machine.Spec.Deletion = v1alpha1.MachineDeletionSpec{}
			},
			does: "DrainingNode, drain", says: skewed("Draining Node node-1"), events: []string{"DrainStarted"},
		},
		"... which the clock of its own cluster says": {
			of: overdue(draining), change: func(s *lifecycle.Snapshot) {
				unreachable(s)
				s.Machine.Spec.Deletion, s.Doubt = v1alpha1.MachineDeletionSpec{}, ""
				s.Drain.Now, s.Drain.Doubt = after(3600), "The clock of the cluster is another one."
			},
			does: "DrainingNode, drain", says: map[string]string{
				v1alpha1.ConditionClockSkewed: "True/ClockSkewed: Draining Node node-1 goes on, though its time seems to be over. The clock of the cluster is another one.",
			}, events: []string{"DrainStarted"},
		},
		"a drain that is done ends as ever": {
			of: overdue(draining), does: "WaitingForInfrastructureDeletion, record", says: map[string]string{v1alpha1.ConditionClockSkewed: ""},
			events: []string{"DrainStarted", "DrainCompleted", "VolumesDetached"},
		},
		"the clock is believed again": {
			of: overdue(draining), change: func(s *lifecycle.Snapshot) {
				s.Drain.Pods = []*corev1.Pod{pod("a")}
				s.Machine.Status = lifecycle.Decide(*s).Status
				s.Doubt = ""
			},
			does: "WaitingForInfrastructureDeletion, record", says: map[string]string{v1alpha1.ConditionClockSkewed: ""}, events: []string{"DrainTimedOut", "VolumesDetached"},
		},
	})
}
