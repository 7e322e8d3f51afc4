// Package evacuation decides the next step of one Evacuation: which evacuator is active, when
// the next one takes over, when the pod is evicted, and when the object is deleted. It also
// decides whether others may evict the pod. At most one evacuator is active, and nobody evicts
// meanwhile. DaemonSet pods, mirror pods and pods with another UID are never evicted. The object
// holds everything that the next decision needs.
package evacuation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const maxPodNameInName = 150

// Name returns the name of the Evacuation of a pod.
func Name(pod *corev1.Pod) string {
	return NameFor(pod.UID, pod.Name)
}

// NameFor returns the name of the Evacuation of a pod. It cuts long names, but not after a dash or
// dot.
func NameFor(uid types.UID, podName string) string {
	podName = podName[:min(len(podName), maxPodNameInName)]
	return string(uid) + "-" + strings.TrimRight(podName, "-.")
}

// New returns the Evacuation of a pod for one instigator. It is complete without the admission
// webhook.
func New(pod *corev1.Pod, instigator string, evacuators []v1alpha1.Evacuator) *v1alpha1.Evacuation {
	deadline := int32(v1alpha1.DefaultProgressDeadlineSeconds)
	e := &v1alpha1.Evacuation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  pod.Namespace,
			Name:       Name(pod),
			Finalizers: []string{instigator},
		},
		Spec: v1alpha1.EvacuationSpec{
			PodRef:                  v1alpha1.LocalPodReference{Name: pod.Name, UID: pod.UID},
			ProgressDeadlineSeconds: &deadline,
		},
	}
	Complete(e, pod, evacuators)
	return e
}

// Complete sets what an Evacuation has from its pod: evacuators, labels, which win, and the node.
func Complete(e *v1alpha1.Evacuation, pod *corev1.Pod, evacuators []v1alpha1.Evacuator) {
	e.Spec.Evacuators = evacuators
	for key, value := range pod.Labels {
		metav1.SetMetaDataLabel(&e.ObjectMeta, key, value)
	}
	delete(e.Labels, v1alpha1.CompleteLabel)
	metav1.SetMetaDataAnnotation(&e.ObjectMeta, v1alpha1.NodeAnnotation, pod.Spec.NodeName)
}

// Finished returns the Evacuation of a pod that is gone, without these finalizers and with a label.
func Finished(e *v1alpha1.Evacuation, drop []string) *v1alpha1.Evacuation {
	finished := e.DeepCopy()
	finished.Finalizers = slices.DeleteFunc(finished.Finalizers, func(finalizer string) bool { return slices.Contains(drop, finalizer) })
	metav1.SetMetaDataLabel(&finished.ObjectMeta, v1alpha1.CompleteLabel, "true")
	return finished
}

// Instigators returns the finalizers by which instigators request the evacuation.
func Instigators(e *v1alpha1.Evacuation) []string {
	return withPrefix(e.Finalizers, true)
}

func foreignFinalizers(e *v1alpha1.Evacuation) []string {
	return withPrefix(e.Finalizers, false)
}

func withPrefix(finalizers []string, instigator bool) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(finalizer string) bool {
		return strings.HasPrefix(finalizer, v1alpha1.InstigatorFinalizerPrefix) != instigator
	})
}
