package view

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// waitingLines names the maintenances that would drain the node, and wait for a NodeBudget.
func (f *NodeFacts) waitingLines() (lines []string) {
	for _, m := range f.Waiting {
		said := statusOn(m, f.Node.Name)
		if said == nil || !maintenance.Limited(m) || !slices.ContainsFunc(said.Blockers, isNodeBudget) {
			continue
		}
		if len(lines) == maxMaintenances {
			return append(lines, "More NodeMaintenances wait for it.")
		}
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s (stage %s) waits for a NodeBudget.", m.Name, maintenance.Stage(m)))
	}
	return lines
}

func isNodeBudget(b v1alpha1.Blocker) bool { return b.Type == v1alpha1.BlockerNodeBudget }

// nodeBudgetLines returns the state of the NodeBudgets that select a node of a rollout or a maintenance
// that waits.
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
