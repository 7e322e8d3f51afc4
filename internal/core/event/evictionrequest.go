package event

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// EvictionControllerActive tells, on the Lease of Ebbtide's leader, that Ebbtide answers
// EvictionRequests from now on.
func EvictionControllerActive(namespace, lease, message string) Event {
	return ofLease(namespace, lease, v1alpha1.EventEvictionControllerActive, message)
}

// EvictionControllerAside tells, on the Lease of Ebbtide's leader, that Ebbtide leaves
// EvictionRequests to another controller.
func EvictionControllerAside(namespace, lease, message string) Event {
	return ofLease(namespace, lease, v1alpha1.EventEvictionControllerAside, message)
}

// EvictionRequestUnanswered warns that a pod is evacuated without its evictionResponders,
// because nobody has answered its EvictionRequest.
func EvictionRequestUnanswered(pod *corev1.Pod) Event {
	return ofPod(pod, v1alpha1.EventEvictionRequestUnanswered, fmt.Sprintf(
		"nobody answers EvictionRequests in this cluster; %s is evacuated without its evictionResponders (%s). Run Ebbtide with --eviction-requests=controller.",
		excerpt.Of(pod.Name, maxNamed), Responders(pod)))
}

// EvictionRequestNameTaken warns that a pod is evacuated without its evictionResponders,
// because somebody else's EvictionRequest has the name of ours.
func EvictionRequestNameTaken(pod *corev1.Pod, name string) Event {
	return ofPod(pod, v1alpha1.EventEvictionRequestNameTaken, fmt.Sprintf(
		"EvictionRequest %s is not Ebbtide's, or is being deleted; pod %s is evacuated without its evictionResponders (%s). To have these: %s",
		name, excerpt.Of(pod.Name, maxNamed), Responders(pod), command.Of("kubectl -n %s delete evictionrequest %s", pod.Namespace, name)))
}

// maxNamed is how many bytes of a name events and messages repeat.
const maxNamed = 100

// Responders names some of the responders of a pod, as messages do.
func Responders(pod *corev1.Pod) string {
	names := make([]string, 0, len(pod.Spec.EvictionResponders))
	for _, one := range pod.Spec.EvictionResponders {
		names = append(names, excerpt.Line(one.Name, maxNamed))
	}
	return phrase.Some(names, maxNames)
}

// ClockSkewed warns, on the Lease of the leader, that its clock is not trusted.
func ClockSkewed(namespace, lease, message string) Event {
	skewed := ofLease(namespace, lease, v1alpha1.EventClockSkewed,
		message+" Until they agree, nothing that cannot be undone is done because of the time: locks, deadlines and timeouts do not end.")
	skewed.Type = corev1.EventTypeWarning
	return skewed
}

func ofLease(namespace, lease, reason, message string) Event {
	return Event{
		Regarding: corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: namespace, Name: lease},
		Type:      corev1.EventTypeNormal, Reason: reason, Action: "Lead", Message: message,
	}
}
