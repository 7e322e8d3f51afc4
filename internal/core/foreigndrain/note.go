package foreigndrain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Notes returns what people should know of a node before and while it is drained, a line each:
// who else drains it, with what helps, and who thinks of it.
func Notes(node *corev1.Node) []string {
	var notes []string
	for _, d := range Of(node) {
		notes = append(notes, d.Sentence(node)+" "+d.help)
	}
	if Candidate(node) {
		notes = append(notes, fmt.Sprintf("The cluster-autoscaler thinks of removing node %s (taint %s).", node.Name, v1alpha1.DeletionCandidateTaint))
	}
	return notes
}

// OfPod returns what people should know of a pod that asks Karpenter to leave its node alone; empty
// if it does not. A maintenance is requested by an administrator, so that it does not count
// there.
func OfPod(pod *corev1.Pod, now time.Time) string {
	value := pod.Annotations[v1alpha1.KarpenterDoNotDisruptAnnotation]
	if !asksKarpenter(value, pod.Status.StartTime, now) {
		return ""
	}
	return fmt.Sprintf("it asks Karpenter to leave its node alone (%s: %s), but leaves", v1alpha1.KarpenterDoNotDisruptAnnotation, excerpt.Line(value, maxReason))
}

// asksKarpenter reports whether Karpenter minds a value: true, or for how long after its start
// the pod is not to be disrupted.
func asksKarpenter(value string, started *metav1.Time, now time.Time) bool {
	if value == "true" {
		return true
	}
	lasts, err := time.ParseDuration(value)
	return err == nil && lasts > 0 && (started == nil || now.Before(started.Add(lasts)))
}
