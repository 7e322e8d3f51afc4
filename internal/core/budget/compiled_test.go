package budget_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/internal/core/budget"
)

// draw makes selectors and labels of few keys and values, so that they often meet.
type draw struct{ *rand.Rand }

func (d draw) labels() map[string]string {
	set := map[string]string{}
	for range d.IntN(4) {
		set[fmt.Sprint("key", d.IntN(3))] = []string{"", "a", "b"}[d.IntN(3)]
	}
	return set
}

func (d draw) selector() *metav1.LabelSelector {
	if d.IntN(8) == 0 {
		return nil
	}
	operators := []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist, "Near",
	}
	selector := &metav1.LabelSelector{MatchLabels: d.labels()}
	for range d.IntN(3) {
		r := metav1.LabelSelectorRequirement{Key: fmt.Sprint("key", d.IntN(3)), Operator: operators[d.IntN(len(operators))]}
		if d.IntN(10) > 0 && (r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn) {
			r.Values = []string{"", "a", "b"}[:1+d.IntN(3)]
		}
		selector.MatchExpressions = append(selector.MatchExpressions, r)
	}
	if d.IntN(10) == 0 {
		selector.MatchLabels["no key!"] = "a"
	}
	return selector
}

// protecting tries the budgets one by one, in the order of their names.
func protecting(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	var applying []*policyv1.PodDisruptionBudget
	for _, b := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			applying = append(applying, b)
		}
	}
	return applying
}

// Whoever asks about one pod and whoever asks about many gets the answer of the API
// server, whatever the selectors are.
func TestTheBudgetsOfAPodAreThoseThatSelectIt(t *testing.T) {
	t.Parallel()
	protected := 0
	for seed := range uint64(50) {
		d := draw{rand.New(rand.NewPCG(seed, 1))}
		var budgets []*policyv1.PodDisruptionBudget
		for n := range d.IntN(20) {
			budgets = append(budgets, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: []string{"shop", "shop", "bank"}[d.IntN(3)], Name: fmt.Sprintf("budget-%02d", n)},
				Spec:       policyv1.PodDisruptionBudgetSpec{Selector: d.selector()},
			})
		}
		shuffled := append([]*policyv1.PodDisruptionBudget(nil), budgets...)
		d.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		compiled := budget.Compile(shuffled)
		for range 20 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: d.labels()}}
			want := protecting(pod, budgets)
			protected += len(want)
			if diff := cmp.Diff(want, budget.Applying(pod, shuffled)); diff != "" {
				t.Fatalf("seed %d: budgets of a pod with labels %v (-want +got):\n%s", seed, pod.Labels, diff)
			}
			if diff := cmp.Diff(want, compiled.Applying(pod)); diff != "" {
				t.Fatalf("seed %d: compiled budgets of a pod with labels %v (-want +got):\n%s", seed, pod.Labels, diff)
			}
		}
	}
	if protected == 0 {
		t.Error("no budget protected any pod, so this compared nothing")
	}
}

func TestNoBudgetsAreNoneOfAnyPod(t *testing.T) {
	t.Parallel()
	var none budget.Compiled
	if got := none.Applying(&corev1.Pod{}); got != nil {
		t.Errorf("Applying = %v", got)
	}
}
