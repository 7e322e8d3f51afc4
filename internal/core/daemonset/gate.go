package daemonset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Hold returns true if a new pod must not start on the node that it is made for.
// A pod that a drain retains comes back whenever it likes.
//
// Errors: what the node keeps away cannot be read.
func Hold(pod *corev1.Pod, node *corev1.Node) (bool, error) {
	if behavior, _ := podclass.DrainLabel(pod); behavior == v1alpha1.DrainBehaviorSkip {
		return false, nil
	}
	suppressed, err := cordon.Suppressed(node)
	return suppressed.Covers(pod), err
}

// Held returns true if our scheduling gate holds the pod back.
func Held(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.SchedulingGates, gate)
}

// gate is our scheduling gate.
var gate = corev1.PodSchedulingGate{Name: v1alpha1.MaintenanceGate}

// Fate is what becomes of a pod that our scheduling gate holds back.
type Fate string

const (
	// Kept means that the pod is held back on.
	Kept Fate = "kept"
	// Released means that the gate is taken away.
	Released Fate = "released"
	// Removed means that the pod is deleted: the node keeps its DaemonSet away
	// altogether now, and a pod that waits would be in the way of rollouts.
	Removed Fate = "removed"
)

// FateOf decides about a pod that our scheduling gate holds back from a node; nil
// is a node that does not exist. The message says why.
func FateOf(pod *corev1.Pod, node *corev1.Node) (fate Fate, message string) {
	if node == nil {
		return Released, "The node that the pod was held back from does not exist."
	}
	hold, err := Hold(pod, node)
	switch {
	case err != nil:
		return Kept, fmt.Sprintf("It is unknown what has to stay away from the node: %v", err)
	case !hold:
		return Released, fmt.Sprintf("No maintenance keeps the pod away from node %s.", node.Name)
	case cordon.SuppressesAll(node) && !podclass.Tolerates(pod, v1alpha1.DaemonSetTaint):
		return Removed, fmt.Sprintf("The DaemonSet does not want the pod on node %s as long as taint %s is there.", node.Name, v1alpha1.DaemonSetTaint)
	}
	return Kept, fmt.Sprintf("The maintenance of node %s is not complete.", node.Name)
}
