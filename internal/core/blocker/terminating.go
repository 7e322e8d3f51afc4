package blocker

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// GraceSlack is the extra time in which a kubelet reports the end of a pod.
const GraceSlack = 10 * time.Second

// terminating explains a pod that was deleted or evicted and is still there.
func terminating(f *Facts) (v1alpha1.Blocker, bool) {
	if since, unreachable := unreachableSince(f.Node); unreachable {
		return unreachableNode(f, since), true
	}
	deadline := f.Pod.DeletionTimestamp.Time
	overdue := f.Now.After(deadline.Add(GraceSlack))
	switch {
	case len(f.Pod.Finalizers) > 0 && (overdue || stopped(f.Pod)):
		return heldByFinalizer(f.Pod), true
	case overdue:
		return outlivedGrace(f.Pod), true
	default:
		return v1alpha1.Blocker{}, false
	}
}

// stopped reports whether the containers have ended: the kubelet then sets the grace period to 0.
func stopped(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return grace != nil && *grace == 0 ||
		pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func unreachableSince(node *corev1.Node) (time.Time, bool) {
	ready := podclass.NodeCondition(node, corev1.NodeReady)
	if ready == nil || ready.Status != corev1.ConditionUnknown {
		return time.Time{}, false
	}
	return ready.LastTransitionTime.Time, true
}

func unreachableNode(f *Facts, since time.Time) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerNodeUnreachable, OfNode(f.Node), since)
	b.Message = fmt.Sprintf("The kubelet on node %s is not responding, so its terminating pods cannot be confirmed as stopped.", f.Node.Name)
	b.Suggestion = command.Of("Bring the node back. If the machine is certainly off: "+
		"kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", f.Node.Name)
	return b
}

func heldByFinalizer(pod *corev1.Pod) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerTerminatingFinalizer, ofPod(pod), pod.DeletionTimestamp.Time)
	b.Message = fmt.Sprintf("The pod terminates and is kept by its finalizers: %s.", strings.Join(pod.Finalizers, ", "))
	b.Suggestion = command.Of("The owner of a finalizer removes it. Find the owner: kubectl -n %s get pod %s -o yaml --show-managed-fields. "+
		"If the owner no longer exists, remove its finalizer and leave the others: kubectl -n %s edit pod %s", pod.Namespace, pod.Name, pod.Namespace, pod.Name)
	return b
}

func outlivedGrace(pod *corev1.Pod) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerTerminatingGrace, ofPod(pod), pod.DeletionTimestamp.Time)
	b.Message = fmt.Sprintf("The pod should have stopped by %s and its kubelet has not confirmed it.",
		pod.DeletionTimestamp.UTC().Format(time.RFC3339))
	b.Suggestion = command.Of("Look at the kubelet and the container runtime of node %s; if the pod's processes have certainly ended: "+
		"kubectl -n %s delete pod %s --grace-period=0 --force", pod.Spec.NodeName, pod.Namespace, pod.Name)
	return b
}
