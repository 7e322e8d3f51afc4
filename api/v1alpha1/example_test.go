package v1alpha1_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A NodeMaintenance that drains one node: batch jobs first, then all other pods.
func ExampleNodeMaintenance() {
	maintenance := v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "kernel-update"},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Reason: "New kernel",
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{
					Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-7"},
				}},
			}}},
			Stage: v1alpha1.StageDrain,
			DrainPlan: []v1alpha1.DrainPlanEntry{{
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "batch"}},
			}},
		},
	}
	text, err := yaml.Marshal(maintenance.Spec)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
	// Output:
	// drainPlan:
	// - podPriority: 0
	//   podSelector:
	//     matchLabels:
	//       app: batch
	// nodeSelector:
	//   nodeSelectorTerms:
	//   - matchFields:
	//     - key: metadata.name
	//       operator: In
	//       values:
	//       - node-7
	// reason: New kernel
	// stage: Drain
}

// The condition Drained is about the spec of its observedGeneration. It covers all selected nodes;
// state is about one.
func ExampleNodeMaintenanceStatus() {
	maintenance := v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "kernel-update", Generation: 2},
		Status: v1alpha1.NodeMaintenanceStatus{
			ObservedGeneration: 2,
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionDrained, Status: metav1.ConditionFalse, ObservedGeneration: 2,
			}},
			NodeStatuses: []v1alpha1.NodeMaintenanceNodeStatus{
				{NodeRef: v1alpha1.NodeReference{Name: "node-7"}, State: v1alpha1.NodeStateDrained},
				{NodeRef: v1alpha1.NodeReference{Name: "node-8"}, State: v1alpha1.NodeStateBlocked, Blockers: []v1alpha1.Blocker{{
					Type: v1alpha1.BlockerPDBExhausted, Suggestion: "Wait, or make the pods of web ready",
				}}},
			},
		},
	}
	drained := meta.FindStatusCondition(maintenance.Status.Conditions, v1alpha1.ConditionDrained)
	current := drained != nil && drained.ObservedGeneration == maintenance.Generation
	fmt.Println("all drained:", current && drained.Status == metav1.ConditionTrue)
	for _, node := range maintenance.Status.NodeStatuses {
		fmt.Println(node.NodeRef.Name, "drained:", node.State.IsDrained())
		for _, blocker := range node.Blockers {
			fmt.Printf("  %s: %s\n", blocker.Type, blocker.Suggestion)
		}
	}
	// Output:
	// all drained: false
	// node-7 drained: true
	// node-8 drained: false
	//   PDBExhausted: Wait, or make the pods of web ready
}

// An evacuator acts while it is active, and reports in the status. Ebbtide evicts the pod after
// activeEvacuatorCompleted.
func ExampleEvacuation() {
	const class = "handover.example.com"
	now := metav1.NewTime(time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC))
	evacuation := v1alpha1.Evacuation{
		ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1alpha1.InstigatorFinalizerPrefix + "node-maintenance"}},
		Spec:       v1alpha1.EvacuationSpec{PodRef: v1alpha1.LocalPodReference{Name: "db-0", UID: "1f2e"}},
		Status:     v1alpha1.EvacuationStatus{ActiveEvacuatorClass: class},
	}

	status := &evacuation.Status
	isRequested := slices.ContainsFunc(evacuation.Finalizers, func(finalizer string) bool {
		return strings.HasPrefix(finalizer, v1alpha1.InstigatorFinalizerPrefix)
	})
	if isRequested && status.ActiveEvacuatorClass == class && !status.ActiveEvacuatorCompleted {
		// Here another pod takes over from db-0. Then:
		status.Message = "Pod db-1 leads."
		status.EvacuationProgressTimestamp = &now
		status.ActiveEvacuatorCompleted = true
	}
	fmt.Println(status.Message, "Completed:", status.ActiveEvacuatorCompleted)
	// Output:
	// Pod db-1 leads. Completed: true
}
