package podclass

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A node out of reach does not report when its pods have stopped, so a Machine that goes
// does not wait for that (machine-deletion-process, "Special cases").
const (
	// UnreachableGraceSeconds is the grace period of evictions from such a node.
	UnreachableGraceSeconds int64 = 1
	// unreachablePatience is for how long after its deletionTimestamp a pod of such a node
	// is still waited for. More than that has to have passed.
	unreachablePatience = time.Second + time.Millisecond
)

// Unreachable reports whether the kubelet of a node is out of touch.
func Unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

// GivenUpTime returns when a Machine no longer waits for a pod because its node cannot
// confirm that the pod has stopped; zero is never. The deletionTimestamp of a pod is the end
// of its grace period, not the moment of its deletion.
func GivenUpTime(pod *corev1.Pod, node *corev1.Node) time.Time {
	if pod.DeletionTimestamp == nil || !Unreachable(node) {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(unreachablePatience)
}
