package scenario

import (
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A surge that fits nowhere is a blocker before anything is done by plan, and as soon as the
// scheduler says so in status, events and why. It goes on when there is room.
func TestASurgeThatFitsNowhereIsABlocker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes, letNew := w.oldAndNew()
	w.serve(app{name: "web", replicas: 1, ready: "0s"})
	pod := w.thePod("web")
	if got := w.plugin(w.ctx, "plan", nodes[0], "-o", "json"); got.Code != 2 || !strings.Contains(got.Out, `"type": "ReplacementUnschedulable"`) {
		t.Errorf("plan says %+v", got)
	}

	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
	w.awaitMaintenance("upgrade", "blocked by a replacement that fits nowhere", func(m *v1alpha1.NodeMaintenance) bool {
		c := apimeta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == string(v1alpha1.BlockerReplacementUnschedulable)
	})
	w.awaitEvent("upgrade", v1alpha1.EventBlocked)
	got := w.plugin(w.ctx, "why", pod.Name, "-n", w.ns)
	if !strings.Contains(got.Out, "(ReplacementUnschedulable)") || !strings.Contains(got.Out, "nodes are available") {
		t.Errorf("why says %+v", got)
	}

	letNew()
	w.awaitDrained("upgrade")
	w.awaitMaintenance("upgrade", "not blocked", func(m *v1alpha1.NodeMaintenance) bool {
		return apimeta.IsStatusConditionFalse(m.Status.Conditions, v1alpha1.ConditionBlocked)
	})
}
