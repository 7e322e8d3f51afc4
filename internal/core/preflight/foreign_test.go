package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/test/golden"
)

// A plan says who else is at the nodes, and which pods ask to be left alone: an administrator
// has to know that before.
func TestPlanShowsAutoscalers(t *testing.T) {
	w := newWorld("one", "two")
	w.free = roomy()
	w.replicas("web", "one", "two")
	w.World.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Value: "1772366400"}}
	w.World.Pods["one"][0].Object.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	f := w.forecast()
	assertTold(t, f, "Leaves", "1 web-0 Evict Leaves -> two")
	notes, objection := f.Nodes[0].Notes, f.Nodes[0].Pods[0].Objection
	if len(notes) != 1 || objection == "" {
		t.Fatalf("notes are %q, the objection is %q, want one of each", notes, objection)
	}
	golden.Message(t, notes...)
	golden.Message(t, objection)
}
