package event

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// NodeAgentDown warns that nobody takes the static pods of a node down, or brings them
// back, because its agent is silent.
func NodeAgentDown(node *corev1.Node, message string) Event {
	return ofNode(node, corev1.EventTypeWarning, v1alpha1.EventNodeAgentDown, "Drain", message)
}

// NodeConditionsRefused tells that the maintenance conditions of a node could
// not be published. The drain goes on without them.
func NodeConditionsRefused(node *corev1.Node, refusal error) Event {
	return Event{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		Type:      corev1.EventTypeWarning,
		Reason:    v1alpha1.EventConditionsRefused,
		Action:    "PublishConditions",
		Message: fmt.Sprintf("The maintenance conditions of node %s could not be published, its drain goes on without them: %v",
			node.Name, refusal),
	}
}
