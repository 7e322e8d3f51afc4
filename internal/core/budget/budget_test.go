package budget_test

import (
	"os"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func status(generation, observed int64, expected, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: generation},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: observed, ExpectedPods: expected, DisruptionsAllowed: allowed,
		},
	}
}

func healthy(n int32, b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b.Status.CurrentHealthy = n
	return b
}

func TestAllowedIsUnknownIfStatusIsOld(t *testing.T) {
	tests := map[string]struct {
		budget *policyv1.PodDisruptionBudget
		want   int32
		known  bool
	}{
		"a fresh status is believed":            {status(2, 2, 5, 3), 3, true},
		"a fresh zero is zero":                  {status(2, 2, 5, 0), 0, true},
		"a negative count allows nothing":       {status(2, 2, 5, -1), 0, true},
		"an older status is unknown":            {status(3, 2, 5, 3), 0, false},
		"a budget never looked at is unknown":   {status(1, 0, 0, 0), 0, false},
		"without any generation it is unknown":  {status(0, 0, 0, 0), 0, false},
		"a newer status than ours is also good": {status(2, 3, 5, 1), 1, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, known := budget.Allowed(tc.budget)
			if got != tc.want || known != tc.known {
				t.Errorf("Allowed = %d, %t; want %d, %t", got, known, tc.want, tc.known)
			}
		})
	}
}

func TestNeverNamesUnsatisfiableBudgets(t *testing.T) {
	maxUnavailable := func(limit string, b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
		value := intstr.Parse(limit)
		b.Spec.MaxUnavailable = &value
		return b
	}
	minAvailable := func(floor string, b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
		value := intstr.Parse(floor)
		b.Spec.MinAvailable = &value
		return b
	}
	tests := map[string]struct {
		budget *policyv1.PodDisruptionBudget
		never  bool
	}{
		"maxUnavailable 0":                     {maxUnavailable("0", status(1, 1, 3, 0)), true},
		"maxUnavailable 0%":                    {maxUnavailable("0%", status(1, 1, 3, 0)), true},
		"maxUnavailable 1% rounds up to a pod": {maxUnavailable("1%", status(1, 1, 3, 0)), false},
		"maxUnavailable 1 is only exhausted":   {maxUnavailable("1", status(1, 1, 3, 0)), false},
		"minAvailable of all pods":             {minAvailable("3", status(1, 1, 3, 0)), true},
		"minAvailable of more than all pods":   {minAvailable("4", status(1, 1, 3, 0)), true},
		"minAvailable leaves one to spare":     {minAvailable("2", status(1, 1, 3, 0)), false},
		"minAvailable 100%":                    {minAvailable("100%", status(1, 1, 0, 0)), true},
		"minAvailable 50% of a single pod":     {minAvailable("50%", status(1, 1, 1, 0)), true},
		"no pods counted yet":                  {minAvailable("1", status(1, 1, 0, 0)), false},
		"maxUnavailable of bare pods":          {maxUnavailable("1", healthy(2, status(1, 1, 0, 0))), true},
		"a percentage of bare pods":            {minAvailable("50%", healthy(2, status(1, 1, 0, 0))), true},
		"a number of bare pods":                {minAvailable("1", healthy(2, status(1, 1, 2, 0))), false},
		"a stale status says nothing":          {maxUnavailable("0", status(2, 1, 3, 0)), false},
		"a surged pod is allowed after all":    {maxUnavailable("0", status(1, 1, 1, 1)), false},
		"a malformed limit says nothing":       {maxUnavailable("many", status(1, 1, 3, 0)), false},
		"neither limit":                        {status(1, 1, 3, 0), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			why, never := budget.Never(tc.budget)
			golden.Message(t, why)
			if never != tc.never || (why != "") != never {
				t.Errorf("Never = %q, %t; want %t", why, never, tc.never)
			}
		})
	}
}
