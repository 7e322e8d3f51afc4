package demo

import (
	"fmt"
	"io"

	policyv1 "k8s.io/api/policy/v1"
)

// floor holds the lowest health that a disruption budget had.
type floor struct {
	budget *policyv1.PodDisruptionBudget
	fewest int32 // healthy pods, at the worst moment
}

func (f *floor) see(budget *policyv1.PodDisruptionBudget) {
	if f.budget == nil || budget.Status.CurrentHealthy < f.fewest {
		f.fewest = budget.Status.CurrentHealthy
	}
	f.budget = budget
}

func (f *floor) print(out io.Writer) {
	if f.budget != nil {
		fmt.Fprintf(out, "%s never had fewer than %d of %d pods ready; its budget requires %d.\n",
			f.budget.Name, f.fewest, f.budget.Status.ExpectedPods, f.budget.Status.DesiredHealthy)
	}
}
