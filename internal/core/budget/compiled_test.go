package budget_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/budget"
)

// Compiled budgets protect the pods that budgets protect.
func TestCompiledBudgetsAreTheSame(t *testing.T) {
	t.Parallel()
	of := func(name string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector},
		}
	}
	budgets := []*policyv1.PodDisruptionBudget{
		of("web", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}),
		of("all", &metav1.LabelSelector{}),
		of("none", nil),
		of("broken", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}),
		of("not-db", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"db"},
		}}}),
	}
	elsewhere := of("all", &metav1.LabelSelector{})
	elsewhere.Namespace = "other"
	budgets = append(budgets, elsewhere)
	compiled := budget.Compile(budgets)
	for _, app := range []string{"", "web", "db"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app}}
		if app != "" {
			pod.Labels = map[string]string{"app": app}
		}
		want := budget.Applying(pod, budgets)
		if len(want) == 0 {
			t.Fatalf("no budget protects a pod with app %q, so this compares nothing", app)
		}
		if diff := cmp.Diff(want, compiled.Applying(pod)); diff != "" {
			t.Errorf("budgets of a pod with app %q (-one by one +compiled):\n%s", app, diff)
		}
	}
}
