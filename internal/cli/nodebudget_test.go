package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/test/golden"
)

// A NodeBudget that applies to all is full. The plan of another node shows that it would wait, and why
// names the NodeMaintenance that waits.
func TestNodeThatWaitsForANodeBudget(t *testing.T) {
	t.Parallel()
	taken := nodeNamed("a-1", "pool=a")
	taken.Annotations = map[string]string{v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["kernel"]}`}
	taken.Spec.Unschedulable = true
	hold := &nodebudget.Hold{Budget: "workers", Message: "Node a-2 waits until NodeBudget workers allows it to be unavailable."}
	waits := &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "bios"}, Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, NodeSelector: nodesNamed([]string{"a-2"})},
		Status: v1alpha1.NodeMaintenanceStatus{NodeStatuses: []v1alpha1.NodeMaintenanceNodeStatus{
			{NodeRef: v1alpha1.NodeReference{Name: "a-2"}, State: v1alpha1.NodeStateBlocked, Blockers: []v1alpha1.Blocker{blocker.NodeBudget(hold)}},
		}},
	}
	free := nodeNamed("a-2", "pool=a")
	for _, node := range []*corev1.Node{taken, free} {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	m := newMemory(t, taken, free, waits, &v1alpha1.NodeBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "workers"},
		Spec: v1alpha1.NodeBudgetSpec{
			NodeSelector: nodesNamed([]string{"a-1", "a-2"}), MaxUnavailable: new(intstr.FromInt32(1)), AppliesTo: v1alpha1.NodeBudgetOfAll,
		},
		Status: v1alpha1.NodeBudgetStatus{Summary: "1 of 2 nodes unavailable, at most 1 may be: a-1 (under maintenance); waiting: a-2 (bios)"},
	})
	var all transcript
	for _, line := range []string{"plan a-2", "plan a-1", "why node/a-2", "why nodemaintenance/bios"} {
		all.add(strings.Fields(line), m.run(strings.Fields(line)...))
	}
	golden.Equal(t, "nodebudget.txt", all.String())
}
