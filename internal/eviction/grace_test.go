package eviction

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
)

// nodeOf is a node that says that it is of a Machine of Cluster API.
func nodeOf(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-7", Annotations: map[string]string{
			"cluster.x-k8s.io/machine": "worker-1", "cluster.x-k8s.io/cluster-name": "prod", "cluster.x-k8s.io/cluster-namespace": "infra",
		}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

// maintenanceOf is the maintenance that drains node-7 for its Machine, changed.
func maintenanceOf(change func(*v1alpha1.NodeMaintenance)) *v1alpha1.NodeMaintenance {
	m := &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name:        bridge.MaintenanceName(bridge.ClusterAPI, "infra", "worker-1"),
			Labels:      map[string]string{v1alpha1.BridgeLabel: "cluster-api"},
			Annotations: map[string]string{v1alpha1.BridgeMachineAnnotation: "infra/worker-1"},
		},
		Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, NodeSelector: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-7"}},
			}}},
		}},
	}
	change(m)
	return m
}

// Only a pod whose node is out of reach and goes with its Machine is evicted with another
// grace period than its own.
func TestGraceIsShortOnlyOnADeadNodeThatGoes(t *testing.T) {
	t.Parallel()
	same := func(*v1alpha1.NodeMaintenance) {}
	for name, test := range map[string]struct {
		objects []client.Object
		short   bool
	}{
		"the node is out of reach and goes":  {[]client.Object{nodeOf(corev1.ConditionUnknown), maintenanceOf(same)}, true},
		"it answers":                         {[]client.Object{nodeOf(corev1.ConditionFalse), maintenanceOf(same)}, false},
		"it is gone":                         {[]client.Object{maintenanceOf(same)}, false},
		"no Machine of it is being deleted":  {[]client.Object{nodeOf(corev1.ConditionUnknown)}, false},
		"somebody else's maintenance":        {[]client.Object{nodeOf(corev1.ConditionUnknown), maintenanceOf(func(m *v1alpha1.NodeMaintenance) { m.Labels = nil })}, false},
		"the maintenance drains nothing now": {[]client.Object{nodeOf(corev1.ConditionUnknown), maintenanceOf(func(m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageCordon })}, false},
		"it is for another node": {[]client.Object{nodeOf(corev1.ConditionUnknown), maintenanceOf(func(m *v1alpha1.NodeMaintenance) {
			m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] = "node-8"
		})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.objects...).Build()
			grace := Grace(t.Context(), cache, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-7"}})
			if short := grace != nil && *grace == 1; short != test.short {
				t.Errorf("the grace period is short: %v, want %v", short, test.short)
			}
		})
	}
}
