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
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Problem is an ignored label or annotation of a pod.
type Problem struct {
	// Key names the label or annotation.
	Key string
	// Message names the key, the error and a valid value.
	Message string
}

// Type returns the drain group of a pod (KEP-4212): Static if it mirrors a pod that a kubelet runs
// from a file, DaemonSet if its controller is a DaemonSet of the group apps, otherwise Default.
func Type(pod *corev1.Pod) v1alpha1.PodType {
	if Mirror(pod) {
		return v1alpha1.PodTypeStatic
	}
	if owner := Owner(pod); owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/") {
		return v1alpha1.PodTypeDaemonSet
	}
	return v1alpha1.PodTypeDefault
}

// Mirror returns true if a pod mirrors one that a kubelet runs from a file. Any user may set the
// annotation, so the pod must also have a Node as its controller: a pod whose controller does not
// exist by its UID is garbage-collected.
func Mirror(pod *corev1.Pod) bool {
	_, annotated := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := Owner(pod)
	return annotated && owner != nil && owner.Kind == "Node" && owner.APIVersion == "v1"
}

// MakeMirror turns a pod into a mirror pod of a node with this UID.
func MakeMirror(pod *corev1.Pod, node types.UID) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, corev1.MirrorPodAnnotationKey, "hash")
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: pod.Spec.NodeName, UID: node, Controller: &controller}}
}

// Priority returns the priority of a pod; a pod without one has 0.
func Priority(pod *corev1.Pod) int32 {
	return ptr.Deref(pod.Spec.Priority, 0)
}

// Terminal returns true if a pod has finished. It is never evacuated or counted.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Ready returns true if the condition Ready of a pod is True.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Unscheduled returns the condition that the scheduler found no node; nil if there is none.
func Unscheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c
		}
	}
	return nil
}

// Owner returns the controller of a pod; nil if it has none. It must not be changed.
func Owner(pod *corev1.Pod) *metav1.OwnerReference {
	return metav1.GetControllerOfNoCopy(pod)
}

// Temporary returns "emptyDir" or "ephemeral" if the volume is deleted with its pod, otherwise "".
func Temporary(v *corev1.Volume) string {
	switch {
	case v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory:
		return "emptyDir"
	case v.Ephemeral != nil:
		return "ephemeral"
	}
	return ""
}
