package v1alpha1

// Reasons of nodes whose machine is replaced.
const (
	// RolloutNodeReplacing: the machine is being deleted, or another node is awaited.
	RolloutNodeReplacing = "Replacing"
	// RolloutNodeNotReplaced: the node failed, as no other node became Ready in time.
	RolloutNodeNotReplaced = "NotReplaced"
	// RolloutNodeNoMachine: Ebbtide knows no object that owns the machine of the node, or several.
	RolloutNodeNoMachine = "NoMachine"
	// RolloutNodeReplaceRefused: the machine of the node could not be deleted.
	RolloutNodeReplaceRefused = "ReplaceRefused"
	// RolloutWaitsForReplace: the manager may not delete machines.
	RolloutWaitsForReplace = "ReplaceDisabled"
)
