package maintenance_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/goal"
)

// Whom a maintenance selects is no matter of how many others there are.
func TestManyMaintenancesSelectAsEachAlone(t *testing.T) {
	w := newWorld(t)
	for n := range 40 {
		name := fmt.Sprintf("node-%02d", n)
		w.node(name).Labels = map[string]string{"pool": fmt.Sprint(n % 4), "zone": fmt.Sprint(n % 3)}
	}
	requirement := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	for n := range 30 {
		terms := []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{requirement("pool", corev1.NodeSelectorOpIn, fmt.Sprint(n%4), fmt.Sprint(n%5))}},
			{MatchFields: []corev1.NodeSelectorRequirement{requirement(metav1.ObjectNameField, corev1.NodeSelectorOpIn, fmt.Sprintf("node-%02d", n))}},
			{MatchExpressions: []corev1.NodeSelectorRequirement{requirement("zone", corev1.NodeSelectorOpNotIn, "0", fmt.Sprint(n%3))}},
		}
		w.maintenance(fmt.Sprintf("m-%02d", n), v1alpha1.StageCordon, nil).Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: terms[n%3 : n%3+1]}
	}
	w.maintenance("broken", v1alpha1.StageCordon, nil).Spec.NodeSelector = nil

	for _, decided := range w.pass().Maintenances {
		alone, err := maintenance.Matching(&decided.Maintenance.Spec, w.nodes)
		if err != nil {
			continue
		}
		if got := int(decided.Status.NodeCount); got != len(alone) || got == 0 {
			t.Errorf("%s selects %d nodes among others and %d alone", decided.Maintenance.Name, got, len(alone))
		}
	}
}

// BenchmarkDecideMany is a pass over 1,000 maintenances of a node each that belong
// together because one of 5,000 nodes is planned.
func BenchmarkDecideMany(b *testing.B) {
	w := newWorld(nil)
	for n := range benchNodes {
		name := fmt.Sprintf("node-%04d", n)
		w.node(name).Labels = map[string]string{"pool": "all", "kubernetes.io/hostname": name}
		if n < 1000 {
			w.run(name, benchPods, 0)
			w.maintenance("of-"+name, v1alpha1.StageDrain, nil).Spec.NodeSelector = labelledNodes("kubernetes.io/hostname", name)
		}
	}
	w.maintenance("later", v1alpha1.StageIdle, nil).Spec.NodeSelector = labelledNodes("pool", "all")
	for range 3 {
		w.pass()
	}
	snapshot := w.snapshot()
	b.ReportAllocs()
	goal.Time(b, 200*time.Millisecond)
	for b.Loop() {
		if decision := maintenance.Decide(snapshot); len(decision.Maintenances) != 1001 {
			b.Fatal("a maintenance is missing")
		}
	}
}
