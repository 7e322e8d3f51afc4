package maintenance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// suppression is which DaemonSet and static pods stay away from a node until its
// maintenance is complete.
type suppression struct {
	// targets is the value of v1alpha1.DrainTargetsAnnotation; empty is none.
	targets string
	// labelled is true if v1alpha1.DaemonSetDrainLabel goes with them.
	labelled bool
	// all is true if no DaemonSet pod at all may come, so that
	// v1alpha1.DaemonSetTaint keeps the DaemonSet controller from creating any.
	all bool
}

// suppressionOf is what a target keeps away, down to a depth. Ordinary pods need
// no record: the cordon keeps them away.
func suppressionOf(set drainplan.Set, depth int) suppression {
	lines := slices.DeleteFunc(set.Render(nil), func(line v1alpha1.DrainPlanEntry) bool {
		of, _ := drainplan.Depth(line.PodType)
		return line.PodType == v1alpha1.PodTypeDefault || of > depth
	})
	if len(lines) == 0 {
		return suppression{}
	}
	// Lines always marshal: a status is nothing but them.
	text, _ := json.Marshal(lines)
	return suppression{targets: string(text), labelled: true, all: slices.ContainsFunc(lines, func(line v1alpha1.DrainPlanEntry) bool {
		return line.PodType == v1alpha1.PodTypeDaemonSet && line.PodSelector == nil && line.PodPriority == math.MaxInt32
	})}
}

// suppressionOn is what a node shows.
func suppressionOn(node *corev1.Node) suppression {
	_, labelled := node.Labels[v1alpha1.DaemonSetDrainLabel]
	return suppression{targets: node.Annotations[v1alpha1.DrainTargetsAnnotation], labelled: labelled, all: SuppressesAll(node)}
}

// SuppressesAll returns true if the node bears the taint under which the
// DaemonSet controller creates no pods there, of DaemonSets that do not tolerate it.
func SuppressesAll(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == v1alpha1.DaemonSetTaint && taint.Effect == corev1.TaintEffectNoSchedule
	})
}

// Suppressed returns which DaemonSet and static pods have to leave a node and
// stay away until its maintenance is complete, as the node itself records it. It
// is empty for a node that records nothing.
//
// Errors: the record cannot be read.
func Suppressed(node *corev1.Node) (drainplan.Set, error) {
	text := node.Annotations[v1alpha1.DrainTargetsAnnotation]
	if text == "" {
		return drainplan.Set{}, nil
	}
	var lines []v1alpha1.DrainPlanEntry
	if err := json.Unmarshal([]byte(text), &lines); err != nil {
		return drainplan.Set{}, fmt.Errorf("annotation %s of node %s: %w", v1alpha1.DrainTargetsAnnotation, node.Name, err)
	}
	return drainplan.NewSet(drainplan.Parse(lines)...), nil
}

// daemonSets are all pods of DaemonSets.
var daemonSets = drainplan.NewSet(drainplan.Parse([]v1alpha1.DrainPlanEntry{{PodType: v1alpha1.PodTypeDaemonSet, PodPriority: math.MaxInt32}})...)

// suppression is what the node has to show. While a maintenance that is not
// understood holds it, nothing is taken back. What the kubelet ends itself nobody
// makes again.
func (t *targetedNode) suppression() suppression {
	kept, set, depth := t.target.suppression, t.target.set, t.depth
	if t.kubeletStops {
		ofDaemonSets, _ := drainplan.Depth(v1alpha1.PodTypeDaemonSet)
		set, depth = drainplan.Join(set, daemonSets), max(depth, ofDaemonSets)
		kept = suppressionOf(set, depth)
	}
	if !t.unclear {
		return kept
	}
	shown, err := Suppressed(t.object)
	if err != nil {
		return kept
	}
	return suppressionOf(drainplan.Join(set, shown), math.MaxInt)
}

// Reason is why the DaemonSet pods of a node leave: what the maintenance that
// drains it gives as its reason, or else its name. It is empty if there is none.
func Reason(node *corev1.Node, maintenances []*v1alpha1.NodeMaintenance) string {
	m := Draining(node, maintenances)
	if m == nil {
		return ""
	}
	return cmp.Or(m.Spec.Reason, m.Name)
}

// Draining is the oldest maintenance in stage Drain that holds a node; nil if there
// is none, or if it cannot be read who holds the node.
func Draining(node *corev1.Node, maintenances []*v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
	held, err := readLedger(node.Annotations[v1alpha1.CordonAnnotation])
	if err != nil {
		return nil
	}
	var oldest *v1alpha1.NodeMaintenance
	for _, m := range maintenances {
		if effectiveStage(m) == v1alpha1.StageDrain && slices.Contains(held.Holders, m.Name) && (oldest == nil || compareAge(m, oldest) < 0) {
			oldest = m
		}
	}
	return oldest
}
