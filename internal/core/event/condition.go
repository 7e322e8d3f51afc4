package event

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// NodeAgentDown warns that an agent does not stop or restart static pods.
var NodeAgentDown = warning(v1alpha1.EventNodeAgentDown, "Drain").onNode

// NodeConditionsRefused warns that the maintenance conditions of a node could not be published.
func NodeConditionsRefused(node *corev1.Node, refusal error) Event {
	return warning(v1alpha1.EventConditionsRefused, "PublishConditions").onNode(node,
		fmt.Sprintf("The maintenance conditions of node %s could not be published; its drain continues: %v", node.Name, refusal))
}
