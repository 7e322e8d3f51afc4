package budget_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func TestApplyingSelectsByNamespaceAndLabels(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"},
	}}
	named := func(namespace, name string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector},
		}
	}
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}}}

	tests := map[string]struct {
		budgets []*policyv1.PodDisruptionBudget
		want    []string
	}{
		"a selector that matches":          {[]*policyv1.PodDisruptionBudget{named("shop", "web", web)}, []string{"web"}},
		"no selector matches nothing":      {[]*policyv1.PodDisruptionBudget{named("shop", "none", nil)}, nil},
		"an empty selector matches all":    {[]*policyv1.PodDisruptionBudget{named("shop", "all", &metav1.LabelSelector{})}, []string{"all"}},
		"an invalid selector matches none": {[]*policyv1.PodDisruptionBudget{named("shop", "broken", broken)}, nil},
		"another namespace is not asked":   {[]*policyv1.PodDisruptionBudget{named("bank", "web", web)}, nil},
		"several come by name": {
			[]*policyv1.PodDisruptionBudget{named("shop", "web", web), named("shop", "all", &metav1.LabelSelector{})},
			[]string{"all", "web"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, b := range budget.Applying(pod, tc.budgets) {
				got = append(got, b.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("applying budgets (-want +got):\n%s", diff)
			}
		})
	}
}

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
