package foreigndrain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Notes returns one line for each other drainer of the node, with advice, and each candidate.
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

// OfPod returns a note about a pod that asks Karpenter for protection, which a maintenance ignores.
func OfPod(pod *corev1.Pod, now time.Time) string {
	value := pod.Annotations[v1alpha1.KarpenterDoNotDisruptAnnotation]
	if !asksKarpenter(value, pod.Status.StartTime, now) {
		return ""
	}
	return fmt.Sprintf("it asks Karpenter to leave its node alone (%s: %s), but leaves", v1alpha1.KarpenterDoNotDisruptAnnotation, excerpt.Line(value, maxReason))
}

// asksKarpenter reports whether Karpenter honours a value: true, or a duration after the start.
func asksKarpenter(value string, started *metav1.Time, now time.Time) bool {
	if value == "true" {
		return true
	}
	lasts, err := time.ParseDuration(value)
	return err == nil && lasts > 0 && (started == nil || now.Before(started.Add(lasts)))
}
