package preflight_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A plan says who else is at the nodes, and which pods ask to be left alone: an administrator
// has to know that before.
func TestAPlanTellsOfAutoscalers(t *testing.T) {
	w := newWorld("one", "two")
	w.free = roomy()
	w.replicas("web", "one", "two")
	w.World.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Value: "1772366400"}}
	w.World.Pods["one"][0].Object.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	f := w.forecast()
	assertTold(t, f, "one would be drained: 1 pod leaves in 1 wave.", "1 web-0 Evict Leaves -> two")
	if notes := strings.Join(f.Nodes[0].Notes, "\n"); !strings.HasPrefix(notes, "The cluster-autoscaler drains node one to remove it") {
		t.Errorf("notes are %q", notes)
	}
	const want = "it asks Karpenter to leave its node alone (karpenter.sh/do-not-disrupt: true), and leaves all the same"
	if got := f.Nodes[0].Pods[0].Objection; got != want {
		t.Errorf("objection is %q, want %q", got, want)
	}
}
