package blocker_test

import (
	"fmt"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func TestBudgetThatRefusesBlocks(t *testing.T) {
	const answer = "The disruption budget web needs 3 healthy pods and has 3 currently"
	byBudget := by("web", refused(v1alpha1.BlockerPDBExhausted, answer))
	check(t, map[string]story{
		"exhausted":                                   {facts(byBudget, budgetNamed("web", maxUnavailable(1))), blocks(v1alpha1.BlockerPDBExhausted, seenBudget, time.Minute)},
		"never satisfiable by maxUnavailable":         {facts(byBudget, budgetNamed("web", maxUnavailable(0))), blocks(v1alpha1.BlockerPDBUnsatisfiable, seenBudget, time.Minute)},
		"never satisfiable by minAvailable":           {facts(byBudget, budgetNamed("web", minAvailable(3))), blocks(v1alpha1.BlockerPDBUnsatisfiable, seenBudget, time.Minute)},
		"never satisfiable because nobody is counted": {facts(byBudget, budgetNamed("web", countsNobody)), blocks(v1alpha1.BlockerPDBUnsatisfiable, seenBudget, time.Minute)},
		"the budget is gone by now":                   {facts(byBudget), blocks(v1alpha1.BlockerPDBExhausted, goneBudget, time.Minute)},
		"words are not read":                          {facts(by("web", refused(v1alpha1.BlockerPDBExhausted, "The disruption budget db needs more")), budgetNamed("db", maxUnavailable(0))), blocks(v1alpha1.BlockerPDBExhausted, goneBudget, time.Minute)},
		"nobody knows which budget":                   {facts(refused(v1alpha1.BlockerPDBExhausted, "no")), blocks(v1alpha1.BlockerPDBExhausted, v1alpha1.BlockerObject{}, time.Minute)},
	})
}

// budgets are as many that select the pod.
func budgets(many int) []func(*known) {
	var changes []func(*known)
	for n := range many {
		changes = append(changes, budgetNamed(fmt.Sprintf("b-%02d", n), maxUnavailable(1)))
	}
	return changes
}

func TestSeveralBudgetsBlock(t *testing.T) {
	check(t, map[string]story{
		"named": {
			facts(refused(v1alpha1.BlockerMultiplePDBs, "This pod has more than one PodDisruptionBudget."),
				budgetNamed("web", maxUnavailable(1)), budgetNamed("all", maxUnavailable(1))),
			blocks(v1alpha1.BlockerMultiplePDBs, replicaSet, time.Minute),
		},
		"too many to name": {facts(append(budgets(12), refused(v1alpha1.BlockerMultiplePDBs, "This pod has more than one PodDisruptionBudget."))...), blocks(v1alpha1.BlockerMultiplePDBs, replicaSet, time.Minute)},
		"gone by now":      {facts(refused(v1alpha1.BlockerMultiplePDBs, "This pod has more than one PodDisruptionBudget.")), blocks(v1alpha1.BlockerMultiplePDBs, replicaSet, time.Minute)},
	})
}
