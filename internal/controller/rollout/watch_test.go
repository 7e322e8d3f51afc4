package rollout

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Nodes wake the controller when something has changed that decisions read, not by heartbeats.
func TestNodesThatMatter(t *testing.T) {
	t.Parallel()
	ready := func(status corev1.ConditionStatus, at time.Time) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.NewTime(at)}}
	}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"heartbeat":  {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(noon.Add(time.Hour)) }, false},
		"annotation": {func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, false},
		"not Ready":  {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, true},
		"True": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionTrue})
		}, true},
		"False": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionFalse})
		}, false},
		"heartbeat of a True one": {func(n *corev1.Node) {
			n.Status.Conditions[1].LastHeartbeatTime = metav1.NewTime(noon.Add(time.Hour))
		}, true},
		"cordon":      {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"label":       {func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }, true},
		"version":     {func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.37.1" }, true},
		"deletion":    {func(n *corev1.Node) { n.DeletionTimestamp = new(metav1.NewTime(noon)) }, true},
		"another one": {func(n *corev1.Node) { n.UID = "another" }, true},
	} {
		old := &corev1.Node{Status: corev1.NodeStatus{Conditions: ready(corev1.ConditionTrue, noon)}}
		old.Status.Conditions = append(old.Status.Conditions, corev1.NodeCondition{Type: "KernelDeadlock", Status: corev1.ConditionTrue})
		now := old.DeepCopy()
		test.change(now)
		if got := nodeChanged(old, now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// NodeMaintenances wake it by their spec, metadata and conditions, not by the progress of pods.
func TestMaintenancesThatMatter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*v1alpha1.NodeMaintenance)
		want   bool
	}{
		"progress":   {func(m *v1alpha1.NodeMaintenance) { m.Status.Summary = "3 pods left" }, false},
		"spec":       {func(m *v1alpha1.NodeMaintenance) { m.Generation++ }, true},
		"annotation": {func(m *v1alpha1.NodeMaintenance) { m.Annotations = map[string]string{"a": "b"} }, true},
		"finalizer":  {func(m *v1alpha1.NodeMaintenance) { m.Finalizers = []string{"a"} }, true},
		"deletion":   {func(m *v1alpha1.NodeMaintenance) { m.DeletionTimestamp = new(metav1.NewTime(noon)) }, true},
		"stage": {func(m *v1alpha1.NodeMaintenance) {
			m.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete}}
		}, true},
		"condition": {func(m *v1alpha1.NodeMaintenance) { m.Status.Conditions = []metav1.Condition{{Type: "Drained"}} }, true},
	} {
		old := aMaintenance("one")
		now := old.DeepCopy()
		test.change(now)
		if got := maintenanceChanged(old, now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
