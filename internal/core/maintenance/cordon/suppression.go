package cordon

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// Suppression holds the DaemonSet and static pods that stay away during a maintenance.
type Suppression struct {
	targets  string // the value of v1alpha1.DrainTargetsAnnotation
	labelled bool   // with v1alpha1.DaemonSetDrainLabel
	// all is true if v1alpha1.DaemonSetTaint keeps every DaemonSet pod away.
	all bool
}

// SuppressionOf returns the pods of a target down to a depth, except ordinary ones.
func SuppressionOf(set drainplan.Set, depth int) Suppression {
	lines := slices.DeleteFunc(set.Render(nil), func(line v1alpha1.DrainPlanEntry) bool {
		of, _ := drainplan.Depth(line.PodType)
		return line.PodType == v1alpha1.PodTypeDefault || of > depth
	})
	if len(lines) == 0 {
		return Suppression{}
	}
	text, _ := json.Marshal(lines)
	return Suppression{targets: string(text), labelled: true, all: slices.ContainsFunc(lines, func(line v1alpha1.DrainPlanEntry) bool {
		return line.PodType == v1alpha1.PodTypeDaemonSet && line.PodSelector == nil && line.PodPriority == math.MaxInt32
	})}
}

func suppressionOn(node *corev1.Node) Suppression {
	_, labelled := node.Labels[v1alpha1.DaemonSetDrainLabel]
	return Suppression{targets: node.Annotations[v1alpha1.DrainTargetsAnnotation], labelled: labelled, all: SuppressesAll(node)}
}

// SuppressesAll reports whether the node has v1alpha1.DaemonSetTaint.
func SuppressesAll(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == v1alpha1.DaemonSetTaint && taint.Effect == corev1.TaintEffectNoSchedule
	})
}

// Suppressed returns the pods that stay away from a node, as the node itself records it.
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

var daemonSets = drainplan.NewSet(drainplan.Parse([]v1alpha1.DrainPlanEntry{{PodType: v1alpha1.PodTypeDaemonSet, PodPriority: math.MaxInt32}})...)

// WithDaemonSets adds all DaemonSets to what a target keeps away.
func WithDaemonSets(set drainplan.Set, depth int) (drainplan.Set, Suppression) {
	ofDaemonSets, _ := drainplan.Depth(v1alpha1.PodTypeDaemonSet)
	set = drainplan.Join(set, daemonSets)
	return set, SuppressionOf(set, max(depth, ofDaemonSets))
}

// WithShown adds a target to what the node shows, unless that cannot be read.
func (s Suppression) WithShown(node *corev1.Node, set drainplan.Set) Suppression {
	shown, err := Suppressed(node)
	if err != nil {
		return s
	}
	return SuppressionOf(drainplan.Join(set, shown), math.MaxInt)
}
