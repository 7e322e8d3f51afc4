package surge_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

const noRoom = "0/3 nodes are available: 3 Insufficient cpu."

// unscheduled is what the scheduler says of the newest pod.
func unscheduled(reason string) func(*scene) {
	return func(s *scene) {
		pod := s.Pods[len(s.Pods)-1]
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: noRoom,
		})
	}
}

// toldUnplaced has the Evacuation say so already.
func toldUnplaced(s *scene) {
	meta.SetStatusCondition(&s.Evacuations[0].Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReplacementUnschedulable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnschedulable, Message: noRoom,
	})
}

// A replacement that fits nowhere is told at once, with the words of the scheduler, and so is
// that it fits after all. Nothing else changes: the pod waits for it.
func TestReplacementWithoutRoomIsReported(t *testing.T) {
	t.Parallel()
	waits := func() *scene { return web(1).evacuated(0).detached(0, time.Second).newcomer(false) }
	for name, test := range map[string]struct {
		scene *scene
		// writes is true if there is a write, told if the condition is True after it.
		writes, told bool
	}{
		"the scheduler finds no node":      {waits().with(unscheduled(corev1.PodReasonUnschedulable)), true, true},
		"that was told":                    {waits().with(unscheduled(corev1.PodReasonUnschedulable)).with(toldUnplaced), false, false},
		"it is on a node and not ready":    {waits(), false, false},
		"it was told, and it is on a node": {waits().with(toldUnplaced), true, false},
		"its scheduling is held back":      {waits().with(unscheduled(corev1.PodReasonSchedulingGated)), false, false},
		"it was told, and another serves":  {waits().newcomer(true).with(toldUnplaced), true, false},
		"it was told, and time is over":    {web(1).evacuated(0).detached(0, time.Hour).newcomer(false).with(toldUnplaced), true, false},
		"it fits nowhere until time is over": {
			web(1).evacuated(0).detached(0, time.Hour).newcomer(false).with(unscheduled(corev1.PodReasonUnschedulable)).with(toldUnplaced), true, false,
		},
		"it is the turn of somebody else": {waits().with(unscheduled(corev1.PodReasonUnschedulable)).with(func(s *scene) {
			s.Evacuations[0].Status.ActiveEvacuatorClass = "mover.example.com"
		}), false, false},
	} {
		written := statuses(surge.Decide(test.scene.Snapshot))
		if len(written) > 1 || (len(written) == 1) != test.writes {
			t.Errorf("%s: %d writes", name, len(written))
			continue
		}
		if len(written) == 0 {
			continue
		}
		told := meta.FindStatusCondition(written[0].Conditions, v1alpha1.ConditionReplacementUnschedulable)
		if (told != nil) != test.told || told != nil && (told.Status != metav1.ConditionTrue || told.Message != noRoom) {
			t.Errorf("%s: told is %+v", name, told)
		}
	}
}

// statuses are those that a decision writes.
func statuses(d surge.Decision) (written []*v1alpha1.EvacuationStatus) {
	for _, move := range d.Moves {
		for i := range move {
			if move[i].Evacuation != nil {
				written = append(written, move[i].Status)
			}
		}
	}
	return written
}
