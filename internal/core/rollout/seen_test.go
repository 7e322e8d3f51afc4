package rollout_test

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// seen counts what happened in all simulations, so that none of it is left out by accident.
type seen struct {
	fleets, starts, retries, crashes, stale, complete, stuck, invalid, confirmed, budgeted, admitted, held, begun, shared, exempt int
	waits, failures                                                                                                               map[string]int
}

func (all *seen) check(t *testing.T) {
	t.Helper()
	t.Logf("%+v", *all)
	for what, count := range map[string]int{
		"starts": all.starts, "retries": all.retries, "crashes": all.crashes, "stale caches": all.stale, "complete rollouts": all.complete, "stuck rollouts": all.stuck, "invalid rollouts": all.invalid,
		"confirmed rollouts": all.confirmed, "starts under a NodeBudget": all.budgeted,
		"nodes admitted for users": all.admitted, "nodes of users that wait": all.held,
		"nodes that some budgets list": all.begun, "nodes of many": all.shared, "exempt nodes": all.exempt,
	} {
		if count == 0 {
			t.Errorf("no %s in all simulations", what)
		}
	}
	for _, reason := range []string{
		v1alpha1.RolloutWaitsForUnavailable, v1alpha1.RolloutWaitsForDomain, v1alpha1.RolloutWaitsForControlPlane, v1alpha1.RolloutWaitsForOtherNodes,
		v1alpha1.RolloutWaitsForCanary, v1alpha1.RolloutWaitsForApproval, v1alpha1.RolloutWaitsForWindow, v1alpha1.RolloutWaitsForBlackout,
		v1alpha1.RolloutWaitsForReady, v1alpha1.RolloutWaitsForMaintenance, v1alpha1.RolloutWaitsForClock, v1alpha1.RolloutWaitsForUser,
		v1alpha1.RolloutWaitsForFailures, v1alpha1.RolloutWaitsForWrite, v1alpha1.RolloutWaitsForNodeBudget,
	} {
		if all.waits[reason] == 0 {
			t.Errorf("no node has waited for %s", reason)
		}
	}
	for _, reason := range []string{
		v1alpha1.RolloutNodeDrainTimedOut, v1alpha1.RolloutNodeWorkTimedOut, v1alpha1.RolloutNodeCancelled, v1alpha1.RolloutNodeDeleted, v1alpha1.RolloutNodeTargetNotMet,
		v1alpha1.RolloutNodeStillNeeded, v1alpha1.RolloutNodeJobFailed, v1alpha1.RolloutNodeJobRefused,
	} {
		if all.failures[reason] == 0 {
			t.Errorf("no node has failed with %s", reason)
		}
	}
}

// countAll counts the reasons why nodes wait and have failed.
func (s *simulation) countAll() {
	for _, r := range s.rollouts {
		for _, group := range r.Status.Waiting {
			s.seen.waits[group.Reason]++
		}
		for _, node := range r.Status.Failed {
			s.seen.failures[node.Reason]++
		}
	}
}
