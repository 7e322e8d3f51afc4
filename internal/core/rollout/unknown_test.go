package rollout_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// A retry whose NodeMaintenance cannot be read counts as started, although the attempt before it has
// ended: the node may be drained right now.
func TestUnreadRetryCountsAsStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	object := &v1alpha1.NodeRollout{ObjectMeta: w.meta("kernel")}
	object.Spec.NodeSelector = pool("a")
	w.rollouts = append(w.rollouts, object)
	d := rollout.Decide(&rollout.Snapshot{Now: w.now, Rollouts: w.rollouts, Nodes: w.nodes})
	if len(d.Rollouts[0].Starts) != 1 {
		t.Fatalf("at first it starts %v", d.Rollouts[0].Starts)
	}
	ended := d.Rollouts[0].Starts[0].DeepCopy()
	ended.Spec.Stage = v1alpha1.StageComplete
	ended.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete}}
	ended.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDeadlinePassed}}
	working := v1alpha1.RolloutNode{Name: "a", NodeMaintenanceName: "the-retry", AttemptCount: 2}
	object.Status.Working = []v1alpha1.RolloutNode{working}
	s := &rollout.Snapshot{
		Now: w.now, Rollouts: w.rollouts, Nodes: w.nodes, Maintenances: []*v1alpha1.NodeMaintenance{ended}, Unknown: map[string]bool{"the-retry": true},
	}
	got := rollout.Decide(s).Rollouts[0]
	if len(got.Starts) > 0 || len(got.Status.Working) != 1 || got.Status.Working[0].NodeMaintenanceName != working.NodeMaintenanceName || got.Status.Working[0].AttemptCount != 2 {
		t.Errorf("it starts %v, working %v", got.Starts, got.Status.Working)
	}
}
