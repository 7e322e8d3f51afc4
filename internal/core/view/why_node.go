package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// NodeFacts holds what the API shows of a node and its pods.
type NodeFacts struct {
	Now          time.Time
	Node         *corev1.Node
	Maintenances []*v1alpha1.NodeMaintenance
	// Pods and Budgets are only set if no maintenance holds the node.
	Pods    []*corev1.Pod
	Budgets []*policyv1.PodDisruptionBudget
	// Rollouts are all, or those that select the node.
	Rollouts    []*v1alpha1.NodeRollout
	NodeBudgets []*v1alpha1.NodeBudget
	// Waiting are all maintenances; those that wait for a NodeBudget of the node are shown.
	Waiting []*v1alpha1.NodeMaintenance
	Unknown bool
}

// Why returns lines about the holders of a node, its remaining pods and their blockers.
func (f *NodeFacts) Why() []string {
	lines := []string{f.cordoned()}
	if b, unreachable := blocker.Unreachable(f.Node); unreachable {
		lines = append(lines, told(&b)...)
	}
	lines = append(lines, foreigndrain.Notes(f.Node)...)
	waits := f.waitingLines()
	if of := append(rolloutLines(f.Node, f.Rollouts), waits...); len(of) > 0 {
		lines = append(append(lines, of...), nodeBudgetLines(f.Node, f.NodeBudgets)...)
	}
	for i, m := range f.Maintenances {
		if i == maxMaintenances {
			lines = append(lines, fmt.Sprintf("%d more NodeMaintenances hold it.", len(f.Maintenances)-i))
			break
		}
		lines = append(lines, f.heldBy(m)...)
	}
	if len(f.Maintenances)+len(waits) > 0 || f.Unknown && f.named() {
		return lines
	}
	return append(lines, f.drainable()...)
}

func (f *NodeFacts) named() bool { return len(cordon.Holders(f.Node)) > 0 }

func (f *NodeFacts) cordoned() string {
	name := f.Node.Name
	switch {
	case !f.Node.Spec.Unschedulable && len(f.Maintenances) > 0:
		return fmt.Sprintf("Node %s is schedulable although a NodeMaintenance holds it.", name)
	case !f.Node.Spec.Unschedulable:
		return fmt.Sprintf("Node %s is schedulable, and no NodeMaintenance holds it.", name)
	case len(f.Maintenances) > 0:
		return fmt.Sprintf("Node %s is cordoned.", name)
	case f.named():
		return fmt.Sprintf("Node %s is cordoned for unknown NodeMaintenances: %s.", name, f.holders())
	}
	return command.Of("Node %s is cordoned, but not by a NodeMaintenance. To uncordon it: kubectl uncordon %s", name, name)
}

func (f *NodeFacts) holders() string {
	all := cordon.Holders(f.Node)
	shown := all[:min(len(all), maxMaintenances)]
	text := excerpt.Line(strings.Join(shown, ", "), maxWords)
	if len(shown) < len(all) {
		text += fmt.Sprintf(" and %d more", len(all)-len(shown))
	}
	return text
}

func (f *NodeFacts) heldBy(m *v1alpha1.NodeMaintenance) []string {
	lines := []string{fmt.Sprintf("NodeMaintenance %s (stage %s) holds it: %s", m.Name, maintenance.Stage(m), excerpt.Line(m.Status.Summary, maxWords))}
	if by := m.Annotations[v1alpha1.RequestedByAnnotation]; by != "" {
		lines = append(lines, "  Requested by "+excerpt.Line(by, maxWords)+".")
	}
	if of := m.Labels[v1alpha1.RolloutLabel]; of != "" {
		lines = append(lines, "  Created by NodeRollout "+excerpt.Line(of, maxWords)+".")
	}
	if slices.Contains(m.Spec.CompletedNodes, v1alpha1.NodeReference{Name: f.Node.Name}) {
		return append(lines, "  It is in spec.completedNodes and will be completed soon.")
	}
	said := statusOn(m, f.Node.Name)
	if said == nil {
		return lines
	}
	shown := (&Snapshot{}).node(m, said)
	if shown.PodsLeft > 0 || shown.Message != "" {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("  %s. %s", phrase.Count(shown.PodsLeft, "pod left", "pods left"), shown.Message), " "))
	}
	for i := range shown.Blockers {
		// The node itself shows foreign drains.
		if b := &shown.Blockers[i]; !b.Others() {
			lines = append(lines, "  "+capital(b.Sentence()))
		}
	}
	for i := range shown.Retained {
		b := &shown.Retained[i]
		lines = append(lines, fmt.Sprintf("  %s: %s (%s) %s %s", phrase.Count(b.PodCount, "pod stays", "pods stay"), b.name(), b.Type, b.Message, b.Suggestion))
	}
	if said.FastForwardedBy != "" {
		lines = append(lines, "  An older maintenance was further ahead: "+excerpt.Line(said.FastForwardedBy, maxWords)+".")
	}
	if shown.State.IsDrained() {
		lines = append(lines, command.Of("  To complete %s: kubectl ebbtide complete %s", m.Name, m.Name))
	}
	return lines
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func statusOn(m *v1alpha1.NodeMaintenance, node string) *v1alpha1.NodeMaintenanceNodeStatus {
	for i := range m.Status.NodeStatuses {
		if one := &m.Status.NodeStatuses[i]; one.NodeRef.Name == node {
			return one
		}
	}
	return nil
}

func (f *NodeFacts) drainable() []string {
	if f.Unknown {
		return []string{"Cannot determine what would block a drain."}
	}
	byNamespace := map[string][]*policyv1.PodDisruptionBudget{}
	for _, b := range f.Budgets {
		byNamespace[b.Namespace] = append(byNamespace[b.Namespace], b)
	}
	known := map[string]*Surroundings{}
	lines := obstacles(f.Pods, func(namespace string) *Surroundings {
		if known[namespace] == nil {
			known[namespace] = &Surroundings{Now: f.Now, Node: f.Node, Budgets: budget.Compile(byNamespace[namespace])}
		}
		return known[namespace]
	})
	running := 0
	for _, pod := range f.Pods {
		running += ones(!podclass.Terminal(pod))
	}
	all := command.Of("To preview a drain: kubectl ebbtide plan %s", f.Node.Name)
	if len(lines) == 0 {
		return []string{fmt.Sprintf("It has %s, and nothing would block a drain. %s", phrase.Count(running, "pod", "pods"), all)}
	}
	lines = append([]string{fmt.Sprintf("It has %s. These would block a drain:", phrase.Count(running, "pod", "pods"))}, lines...)
	return append(lines, all)
}
