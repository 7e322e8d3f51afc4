package blocker_test

import (
	"fmt"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func TestABudgetRefuses(t *testing.T) {
	const answer = "The disruption budget web needs 3 healthy pods and has 3 currently"
	byBudget := by("web", refused(v1alpha1.BlockerPDBExhausted, answer))
	check(t, map[string]story{
		"exhausted": {
			facts(byBudget, budgetNamed("web", maxUnavailable(1))),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerPDBExhausted, Object: seenBudget, PodCount: 1, SinceTime: ago(time.Minute), Message: answer,
				Suggestion: "It opens as soon as more of its pods are ready. See which are not: kubectl -n shop get pods -l app=web",
			},
		},
		"never satisfiable by maxUnavailable": {
			facts(byBudget, budgetNamed("web", maxUnavailable(0))),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerPDBUnsatisfiable, Object: seenBudget, PodCount: 1, SinceTime: ago(time.Minute),
				Message:    "PodDisruptionBudget web can never allow a disruption: maxUnavailable is 0: no pod may ever be disrupted.",
				Suggestion: `Let one pod be unavailable: kubectl -n shop patch poddisruptionbudget web --type=merge -p '{"spec":{"maxUnavailable":1}}'`,
			},
		},
		"never satisfiable by minAvailable": {
			facts(byBudget, budgetNamed("web", minAvailable(3))),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerPDBUnsatisfiable, Object: seenBudget, PodCount: 1, SinceTime: ago(time.Minute),
				Message: "PodDisruptionBudget web can never allow a disruption: minAvailable 3 needs 3 available pods and there are 3 in all.",
				Suggestion: "Run at least 4 replicas, or let one pod be unavailable: " +
					`kubectl -n shop patch poddisruptionbudget web --type=merge -p '{"spec":{"minAvailable":null,"maxUnavailable":1}}'`,
			},
		},
		"never satisfiable because nobody is counted": {
			facts(byBudget, budgetNamed("web", countsNobody)),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerPDBUnsatisfiable, Object: seenBudget, PodCount: 1, SinceTime: ago(time.Minute),
				Message: "PodDisruptionBudget web can never allow a disruption: it counts in replicas and its pods have no controller.",
				Suggestion: "Give the pods a controller, or count pods: " +
					`kubectl -n shop patch poddisruptionbudget web --type=merge -p '{"spec":{"minAvailable":0,"maxUnavailable":null}}'`,
			},
		},
		"the budget is gone by now": {
			facts(byBudget),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerPDBExhausted, Object: goneBudget, PodCount: 1, SinceTime: ago(time.Minute), Message: answer,
				Suggestion: "See what the budget counts: kubectl -n shop describe poddisruptionbudget web",
			},
		},
		"words are not read": {
			facts(by("web", refused(v1alpha1.BlockerPDBExhausted, "The disruption budget db needs more")), budgetNamed("db", maxUnavailable(0))),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerPDBExhausted, Object: goneBudget, PodCount: 1, SinceTime: ago(time.Minute), Message: "The disruption budget db needs more",
				Suggestion: "See what the budget counts: kubectl -n shop describe poddisruptionbudget web",
			},
		},
		"nobody knows which budget": {
			facts(refused(v1alpha1.BlockerPDBExhausted, "no")),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerPDBExhausted, PodCount: 1, SinceTime: ago(time.Minute), Message: "no",
				Suggestion: "See the budgets of the namespace: kubectl -n shop get poddisruptionbudgets",
			},
		},
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

func TestSeveralBudgetsRefuse(t *testing.T) {
	check(t, map[string]story{
		"named": {
			facts(refused(v1alpha1.BlockerMultiplePDBs, "This pod has more than one PodDisruptionBudget."),
				budgetNamed("web", maxUnavailable(1)), budgetNamed("all", maxUnavailable(1))),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerMultiplePDBs, Object: replicaSet, PodCount: 1, SinceTime: ago(time.Minute),
				Message:    "This pod has more than one PodDisruptionBudget. They are all, web.",
				Suggestion: "Keep one and narrow or delete the rest, such as: kubectl -n shop delete poddisruptionbudget web",
			},
		},
		"too many to name": {
			facts(append(budgets(12), refused(v1alpha1.BlockerMultiplePDBs, "This pod has more than one PodDisruptionBudget."))...),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerMultiplePDBs, Object: replicaSet, PodCount: 1, SinceTime: ago(time.Minute),
				Message:    "This pod has more than one PodDisruptionBudget. They are b-00, b-01, b-02, b-03, b-04, b-05, b-06, b-07, b-08, b-09 and 2 more.",
				Suggestion: "Keep one and narrow or delete the rest. See what they select: kubectl -n shop get poddisruptionbudgets -o custom-columns=NAME:.metadata.name,SELECTS:.spec.selector",
			},
		},
		"gone by now": {
			facts(refused(v1alpha1.BlockerMultiplePDBs, "This pod has more than one PodDisruptionBudget.")),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerMultiplePDBs, Object: replicaSet, PodCount: 1, SinceTime: ago(time.Minute),
				Message:    "This pod has more than one PodDisruptionBudget.",
				Suggestion: "Let only one budget select the pod: kubectl -n shop get poddisruptionbudgets",
			},
		},
	})
}
