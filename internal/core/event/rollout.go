package event

import (
	"fmt"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func (t template) onRollout(r *v1alpha1.NodeRollout, message string) Event {
	return t.on(reference(ours, "NodeRollout", r), message)
}

// RolloutNodeStarted reports that a rollout maintains a node.
func RolloutNodeStarted(r *v1alpha1.NodeRollout, node, maintenance string) Event {
	return normal(v1alpha1.EventRolloutNodeStarted, "Start").onRollout(r, fmt.Sprintf("Node %s started with NodeMaintenance %s.", node, maintenance))
}

// RolloutNodeFailed warns that a node of a rollout failed, and why.
func RolloutNodeFailed(r *v1alpha1.NodeRollout, node, why string) Event {
	return warning(v1alpha1.EventRolloutNodeFailed, "Maintain").onRollout(r, fmt.Sprintf("Node %s failed: %s", node, why))
}

// RolloutMachineDeleted reports that the machine of a drained node was deleted.
func RolloutMachineDeleted(r *v1alpha1.NodeRollout, node, machine string) Event {
	return normal(v1alpha1.EventRolloutMachineDeleted, "Replace").onRollout(r, fmt.Sprintf("%s was deleted to replace node %s.", machine, node))
}

// RolloutComplete reports that every node of a rollout is done, failed or skipped.
func RolloutComplete(r *v1alpha1.NodeRollout, summary string) Event {
	return normal(v1alpha1.EventRolloutComplete, "Complete").onRollout(r, "The rollout is complete: "+summary)
}
