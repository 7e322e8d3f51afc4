package daemonset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Hold reports whether a new pod must not start on its node. It fails if the node is unreadable.
func Hold(pod *corev1.Pod, node *corev1.Node) (bool, error) {
	if behavior, _ := podclass.DrainLabel(pod); behavior == v1alpha1.DrainBehaviorSkip {
		return false, nil
	}
	suppressed, err := cordon.Suppressed(node)
	return suppressed.Covers(pod), err
}

// Held returns true if the pod has our scheduling gate.
func Held(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.SchedulingGates, gate)
}

var gate = corev1.PodSchedulingGate{Name: v1alpha1.MaintenanceGate}

// Fate is the decision about a pod with our scheduling gate.
type Fate string

const (
	// Kept means that the gate stays.
	Kept Fate = "kept"
	// Released means that the gate is removed.
	Released Fate = "released"
	// Removed means that the pod is deleted: the node keeps its whole DaemonSet away, and a waiting
	// pod would block rollouts.
	Removed Fate = "removed"
)

// FateOf decides about a pod with our scheduling gate, with a message; node may be nil.
func FateOf(pod *corev1.Pod, node *corev1.Node) (fate Fate, message string) {
	if node == nil {
		return Released, "The node that the pod was held back from does not exist."
	}
	hold, err := Hold(pod, node)
	switch {
	case err != nil:
		return Kept, fmt.Sprintf("The drain targets of the node are unknown: %v", err)
	case !hold:
		return Released, fmt.Sprintf("No maintenance keeps the pod away from node %s.", node.Name)
	case cordon.SuppressesAll(node) && !podclass.Tolerates(pod, v1alpha1.DaemonSetTaint):
		return Removed, fmt.Sprintf("The DaemonSet does not want the pod on node %s as long as taint %s is there.", node.Name, v1alpha1.DaemonSetTaint)
	}
	return Kept, fmt.Sprintf("The maintenance of node %s is not complete.", node.Name)
}
