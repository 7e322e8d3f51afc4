// Package podclass says what a pod is to a drain: its type, priority and owner, whether it is
// done, what its labels ask for, how long it tolerates a node that is down, and its evacuators.
// It reads only the pod. What it does not understand is returned as a Problem, and the pod is
// never refused for it.
package podclass

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Problem is a label or annotation of a pod that is left out because it is not
// understood.
type Problem struct {
	// Key is the key of the label or annotation.
	Key string
	// Message names the key, says what is wrong and what would be right.
	Message string
}

// Type returns the drain group that a pod belongs to (KEP-4212). A pod is
// Static if it mirrors one that a kubelet runs from a file, DaemonSet if its
// controller is a DaemonSet of the group apps, and Default otherwise.
func Type(pod *corev1.Pod) v1alpha1.PodType {
	if Mirror(pod) {
		return v1alpha1.PodTypeStatic
	}
	if owner := Owner(pod); owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/") {
		return v1alpha1.PodTypeDaemonSet
	}
	return v1alpha1.PodTypeDefault
}

// Mirror returns true if a pod shows one that a kubelet runs from a file. Anybody may give a
// pod the annotation. Kubelets must name their Node as its controller, too, and a pod whose
// controller does not exist by its UID is garbage.
func Mirror(pod *corev1.Pod) bool {
	_, annotated := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := Owner(pod)
	return annotated && owner != nil && owner.Kind == "Node" && owner.APIVersion == "v1"
}

// MakeMirror makes a pod what Mirror looks for, on a node with this UID.
func MakeMirror(pod *corev1.Pod, node types.UID) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, corev1.MirrorPodAnnotationKey, "hash")
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: pod.Spec.NodeName, UID: node, Controller: &controller}}
}

// Priority returns the priority of a pod; a pod without one has 0.
func Priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// Terminal returns true if a pod is done. A terminal pod is never evacuated and
// never counted.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Ready returns true if a pod says that it serves, whatever else becomes of it.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Unscheduled returns the condition in which the scheduler says why a pod is on no node; nil if
// it does not. The result belongs to the pod and must not be changed.
func Unscheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c
		}
	}
	return nil
}

// Owner returns the controller of a pod, nil if it has none. The result belongs
// to the pod and must not be changed.
func Owner(pod *corev1.Pod) *metav1.OwnerReference {
	return metav1.GetControllerOfNoCopy(pod)
}

// Temporary is the kind of a volume whose data goes with its pod, "emptyDir" or
// "ephemeral"; empty for all others, and for one in memory, which nobody expects to last.
func Temporary(v *corev1.Volume) string {
	switch {
	case v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory:
		return "emptyDir"
	case v.Ephemeral != nil:
		return "ephemeral"
	}
	return ""
}
