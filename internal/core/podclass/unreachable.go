package podclass

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// An unreachable node does not confirm that its pods have stopped, so a deletion of its Machine does
// not wait for that (machine-deletion-process, "Special cases").
const (
	// UnreachableGraceSeconds is the grace period of evictions from such a node.
	UnreachableGraceSeconds int64 = 1
	// unreachablePatience limits the wait for a pod after its deletionTimestamp.
	unreachablePatience = time.Second + time.Millisecond
)

// Unreachable reports whether the kubelet of a node is out of touch.
func Unreachable(node *corev1.Node) bool {
	ready := NodeCondition(node, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionUnknown
}

// NodeReady reports whether a node has condition Ready.
func NodeReady(node *corev1.Node) bool {
	ready := NodeCondition(node, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// ControlPlaneLabel is on control plane nodes of kubeadm and its like, with any value.
const ControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// IsControlPlane reports whether the labels of a node are those of a control plane node.
func IsControlPlane(labels map[string]string) bool {
	_, found := labels[ControlPlaneLabel]
	return found
}

// NodeCondition returns a condition of a node; nil if it has none of that type or is nil itself.
func NodeCondition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	if node == nil {
		return nil
	}
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &node.Status.Conditions[at]
}

// GivenUpTime returns when a pod on an unreachable node is no longer awaited; zero is never.
func GivenUpTime(pod *corev1.Pod, node *corev1.Node) time.Time {
	if pod.DeletionTimestamp == nil || !Unreachable(node) {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(unreachablePatience)
}
