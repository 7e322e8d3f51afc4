package maintenance_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/goal"
)

// BenchmarkDecideRefused is a pass over 5,000 pods on 200 nodes, whose evictions are
// all refused, in a namespace of 1,000 budgets.
func BenchmarkDecideRefused(b *testing.B) {
	for name, tc := range map[string]struct {
		// selector is that of budget n, answer what the API server says of pod n.
		selector func(n int) *metav1.LabelSelector
		refusal  v1alpha1.BlockerType
	}{
		"EachByOne": {func(n int) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop", "component": fmt.Sprint(n)}}
		}, v1alpha1.BlockerPDBExhausted},
		"EachByExpression": {func(n int) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"shop", "store"}},
				{Key: "component", Operator: metav1.LabelSelectorOpIn, Values: []string{fmt.Sprint(n), fmt.Sprint("old-", n)}},
			}}
		}, v1alpha1.BlockerPDBExhausted},
		"EachByAll": {func(int) *metav1.LabelSelector { return &metav1.LabelSelector{} }, v1alpha1.BlockerMultiplePDBs},
	} {
		b.Run(name, func(b *testing.B) {
			snapshot := refusedEverywhere(tc.selector, tc.refusal).snapshot()
			b.ReportAllocs()
			goal.CPU(b, 300*time.Millisecond)
			for b.Loop() {
				decision := maintenance.Decide(snapshot)
				if status := decision.Maintenances[0].Status; len(status.NodeStatuses) != 200 || len(status.NodeStatuses[0].Blockers) == 0 {
					b.Fatal("nothing blocks")
				}
			}
		})
	}
}

func refusedEverywhere(selector func(n int) *metav1.LabelSelector, refusal v1alpha1.BlockerType) *world {
	const nodes, pods, budgets = 200, 25, 1000
	w := newWorld(nil)
	for n := range nodes {
		name := fmt.Sprintf("node-%03d", n)
		w.node(name).Labels = map[string]string{"pool": "all"}
		for range pods {
			component := label("component", fmt.Sprint(w.born%budgets))
			w.run(name, 1, 0, label("app", "shop"), component, label("statefulset.kubernetes.io/pod-name", fmt.Sprint("pod-", w.born)))
		}
	}
	limit := intstr.FromInt32(1)
	for n := range budgets {
		w.budgets = append(w.budgets, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("budget-%03d", n), Generation: 1},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector(n), MaxUnavailable: &limit},
			Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 5},
		})
	}
	w.maintenance("all", v1alpha1.StageDrain, nil).Spec.NodeSelector = labelledNodes("pool", "all")
	for range 3 {
		w.pass()
	}
	for _, running := range w.pods {
		for _, pod := range running {
			w.answer(pod, refusal)
		}
	}
	return w
}

// answer has the API server refuse the eviction of the pod.
func (w *world) answer(pod *corev1.Pod, refusal v1alpha1.BlockerType) {
	e := w.evacuations[pod.UID].DeepCopy()
	e.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue, Reason: string(refusal),
		Message:            "The disruption budget budget-" + pod.Labels["component"] + " needs 5 healthy pods and has 5 currently",
		LastTransitionTime: metav1.NewTime(w.now.Add(-time.Minute)),
	}}
	w.evacuations[pod.UID] = e
}
