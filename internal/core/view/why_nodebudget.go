package view

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// nodeBudgetLines returns the state of the NodeBudgets that select a node of a rollout.
func nodeBudgetLines(node *corev1.Node, budgets []*v1alpha1.NodeBudget) (lines []string) {
	for _, b := range budgets {
		selected, err := maintenance.Matching(&v1alpha1.NodeMaintenanceSpec{NodeSelector: b.Spec.NodeSelector}, []*corev1.Node{node})
		if err == nil && len(selected) == 0 || len(lines) == maxMaintenances {
			continue
		}
		lines = append(lines, fmt.Sprintf("NodeBudget %s selects it: %s", b.Name, excerpt.Line(b.Status.Summary, maxWords)))
	}
	return lines
}
