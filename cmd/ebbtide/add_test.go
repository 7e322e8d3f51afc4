package main

import "testing"

// Without the part that admits nodes, no NodeBudget keeps a NodeMaintenance from them.
func TestMissingRolloutsHoldNoNodes(t *testing.T) {
	t.Parallel()
	served, err := addRollouts(nil, flags{rollouts: false}, guards{})
	if err != nil || served != nil {
		t.Errorf("NodeBudgets are followed by %v (%v)", served, err)
	}
}
