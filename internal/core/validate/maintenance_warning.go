package validate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// usualToleration is the default toleration in seconds of a node that is away.
const usualToleration = 300

// Warnings reports problems of the selected nodes and staying pods that the change concerns.
func (c MaintenanceChange) Warnings() []string {
	if c.Ends() || !c.movesNodes() && !c.changesInPlace() && !c.changesDeadline() {
		return nil
	}
	// An invalid selector is refused elsewhere.
	matching, err := maintenance.Matching(&c.New.Spec, c.Nodes)
	var warnings []string
	if err == nil && c.movesNodes() {
		warnings = append(c.ofNodes(matching), ofForeignDrains(matching)...)
	}
	warnings = append(warnings, c.ofDeadline()...)
	if !c.movesNodes() && !c.changesInPlace() {
		return warnings
	}
	return slices.Concat(warnings, c.ofInPlace(matching), c.ofOthers(matching))
}

func (c MaintenanceChange) movesNodes() bool {
	return c.Old == nil || c.Old.Spec.Stage != c.New.Spec.Stage ||
		!equality.Semantic.DeepEqual(c.Old.Spec.NodeSelector, c.New.Spec.NodeSelector)
}

func (c MaintenanceChange) changesInPlace() bool {
	return c.Old == nil || !equality.Semantic.DeepEqual(c.Old.Spec.InPlace, c.New.Spec.InPlace)
}

// Drains returns true if the NodeMaintenance drains nodes after the change.
func (c MaintenanceChange) Drains() bool { return !c.Ends() && c.New.Spec.Stage == v1alpha1.StageDrain }

func (c MaintenanceChange) ofNodes(matching []*corev1.Node) []string {
	selected, all := controlPlanes(matching), controlPlanes(c.Nodes)
	switch {
	case len(matching) == 0:
		return []string{"spec.nodeSelector matches no node now; nodes that it matches later are taken into maintenance as they come"}
	case len(matching) == len(c.Nodes):
		return []string{fmt.Sprintf("spec.nodeSelector matches every node of the cluster (%d); while they are drained no node is left for their pods", len(c.Nodes))}
	case all > 0 && selected == all:
		return []string{fmt.Sprintf("spec.nodeSelector matches every control-plane node (%d); drain them one after the other to keep the control plane available", all)}
	}
	return nil
}

func ofForeignDrains(matching []*corev1.Node) []string {
	var drained []*corev1.Node
	for _, node := range matching {
		if len(foreigndrain.Of(node)) > 0 {
			drained = append(drained, node)
		}
	}
	if len(drained) == 0 {
		return nil
	}
	says, _ := foreigndrain.Blocker(drained[0], false)
	if len(drained) == 1 {
		return []string{"another tool drains the node as well, and both drains continue: " + says.Message}
	}
	return []string{fmt.Sprintf("another tool drains %s as well, and both drains continue: %s", nodesNamed(drained), says.Message)}
}

func controlPlanes(nodes []*corev1.Node) (count int) {
	for _, node := range nodes {
		if podclass.IsControlPlane(node.Labels) {
			count++
		}
	}
	return count
}

// ofInPlace warns of what is done to pods with the label to stay.
func (c MaintenanceChange) ofInPlace(matching []*corev1.Node) (warnings []string) {
	inPlace := c.New.Spec.InPlace
	if inPlace == nil {
		return nil
	}
	if len(matching) > 1 && inPlace.ExpectedRebootCount != nil && *inPlace.ExpectedRebootCount == 0 {
		warnings = append(warnings, fmt.Sprintf("spec.inPlace.expectedRebootCount is 0 with %d nodes: those whose pods stay under one PodDisruptionBudget wait for each other, "+
			"and each keeps its locks until it is declared back (%s) or the maintenance is complete",
			len(matching), command.Of("kubectl annotate drainrecord NODE %s=true", v1alpha1.BackAnnotation)))
	}
	if inPlace.ExpectedDowntimeSeconds > usualToleration {
		warnings = append(warnings, fmt.Sprintf("spec.inPlace.expectedDowntimeSeconds is %d, and pods tolerate a node that is away for %d seconds "+
			"unless they say otherwise: those without longer tolerations of %s and %s are drained, whatever their label %s",
			inPlace.ExpectedDowntimeSeconds, usualToleration, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, v1alpha1.OnUpgradeLabel))
	}
	if inPlace.OnLockTimeout != v1alpha1.LockTimeoutWait && inPlace.LockTimeoutSeconds > 0 && inPlace.LockTimeoutSeconds < inPlace.ExpectedDowntimeSeconds {
		warnings = append(warnings, fmt.Sprintf("spec.inPlace.lockTimeoutSeconds is %d, which is shorter than expectedDowntimeSeconds (%d): "+
			"a node gives up its locks before the pods of an application are back that is down for as long elsewhere; give it more time",
			inPlace.LockTimeoutSeconds, inPlace.ExpectedDowntimeSeconds))
	}
	if inPlace.OnLockTimeout == v1alpha1.LockTimeoutDelete {
		warnings = append(warnings, fmt.Sprintf("spec.inPlace.onLockTimeout is Delete: pods that would stay are deleted past their PodDisruptionBudget "+
			"if it cannot be locked within %d seconds (lockTimeoutSeconds)", inPlace.LockTimeoutSeconds))
	}
	if entries := c.staying(); len(entries) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: with spec.inPlace pods labelled %s=%s stay; the plan orders only those of them that cannot",
			strings.Join(entries, ", "), v1alpha1.OnUpgradeLabel, v1alpha1.OnUpgradeStay))
	}
	return warnings
}

// staying returns the entries of the drain plan that select pods by the label to stay.
func (c MaintenanceChange) staying() (entries []string) {
	for i := range c.New.Spec.DrainPlan {
		if entry := &c.New.Spec.DrainPlan[i]; selectsStaying(entry.PodSelector) {
			entries = append(entries, fmt.Sprintf("spec.drainPlan[%d].podSelector (podType %s, podPriority %d)", i, entry.PodType, entry.PodPriority))
		}
	}
	return entries
}

func selectsStaying(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	stay := func(value string) bool { return strings.EqualFold(value, v1alpha1.OnUpgradeStay) }
	if value, demanded := selector.MatchLabels[v1alpha1.OnUpgradeLabel]; demanded {
		return stay(value)
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == v1alpha1.OnUpgradeLabel && (r.Operator == metav1.LabelSelectorOpExists ||
			r.Operator == metav1.LabelSelectorOpIn && slices.ContainsFunc(r.Values, stay))
	})
}

// ofOthers warns of NodeMaintenances on the same nodes that leave other pods there.
func (c MaintenanceChange) ofOthers(matching []*corev1.Node) (warnings []string) {
	if !c.Drains() {
		return nil
	}
	if c.OthersUnknown != nil {
		return []string{fmt.Sprintf("could not look for other NodeMaintenances that drain the same nodes: %v", c.OthersUnknown)}
	}
	for _, other := range c.Others {
		if other.Name == c.New.Name || !(MaintenanceChange{New: other}).Drains() {
			continue
		}
		// An invalid selector drains nothing.
		shared, err := maintenance.Matching(&other.Spec, matching)
		if says := together(c.New.Spec.InPlace != nil, other.Spec.InPlace != nil); err == nil && len(shared) > 0 && says != "" {
			warnings = append(warnings, fmt.Sprintf("NodeMaintenance %s also drains %s%s", other.Name, nodesNamed(shared), says))
		}
	}
	if more := len(warnings) - maxNamed; more > 0 {
		warnings = append(warnings[:maxNamed], fmt.Sprintf("%d more NodeMaintenances also drain some of these nodes", more))
	}
	return warnings
}

// together returns the common effect of two NodeMaintenances on pods that ask to stay.
func together(this, other bool) string {
	switch {
	case this && other:
		return " in place: pods stay there only if they tolerate the longer expectedDowntimeSeconds of the two"
	case this:
		return ", not in place: no pod stays there"
	case other:
		return " in place: pods that stay there for it leave now"
	}
	return ""
}

func nodesNamed(nodes []*corev1.Node) string {
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return namedNodes(names)
}

func namedNodes(names []string) string {
	slices.Sort(names)
	if len(names) == 1 {
		return "node " + names[0]
	}
	return "nodes " + phrase.Some(names, maxNamed)
}
