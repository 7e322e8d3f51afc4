package event

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// Events about the controller of EvictionRequests, on the Lease of Ebbtide's leader.
var (
	EvictionControllerActive = normal(v1alpha1.EventEvictionControllerActive, "Lead").onLease
	EvictionControllerAside  = normal(v1alpha1.EventEvictionControllerAside, "Lead").onLease
)

// EvictionRequestUnanswered warns that a pod is evacuated because its EvictionRequest was not
// answered.
func EvictionRequestUnanswered(pod *corev1.Pod) Event {
	return warning(v1alpha1.EventEvictionRequestUnanswered, "Drain").onPod(pod, fmt.Sprintf(
		"No controller responds to EvictionRequests in this cluster; %s is evacuated without its evictionResponders (%s). Run Ebbtide with --eviction-requests=controller.",
		excerpt.Of(pod.Name, maxNamed), Responders(pod)))
}

// EvictionRequestNameTaken warns that a foreign EvictionRequest has our name, so the pod is
// evacuated.
func EvictionRequestNameTaken(pod *corev1.Pod, name string) Event {
	return warning(v1alpha1.EventEvictionRequestNameTaken, "Drain").onPod(pod, fmt.Sprintf(
		"EvictionRequest %s is not Ebbtide's, or is being deleted; pod %s is evacuated without its evictionResponders (%s). To have these: %s",
		name, excerpt.Of(pod.Name, maxNamed), Responders(pod), command.Of("kubectl -n %s delete evictionrequest %s", pod.Namespace, name)))
}

const maxNamed = 100

// Responders returns the names of some responders of a pod.
func Responders(pod *corev1.Pod) string {
	names := make([]string, 0, len(pod.Spec.EvictionResponders))
	for _, one := range pod.Spec.EvictionResponders {
		names = append(names, excerpt.Line(one.Name, maxNamed))
	}
	return phrase.Some(names, maxNames)
}

// ClockSkewed warns, on the Lease of the leader, that its clock is not trusted.
func ClockSkewed(namespace, lease, message string) Event {
	return warning(v1alpha1.EventClockSkewed, "Lead").onLease(namespace, lease,
		message+" Until they agree, time-based irreversible actions are paused: locks, deadlines and timeouts do not end.")
}
