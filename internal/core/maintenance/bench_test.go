package maintenance_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/goal"
)

const benchNodes, benchPods = 5000, 30

// fleet is 5,000 nodes with 30 pods each under three maintenances: one of all
// nodes, one of a half of them with selectors in its plan, one that is idle.
func fleet(b *testing.B) *world {
	w := newWorld(nil)
	w.runners.DaemonSets = true
	for n := range benchNodes {
		name := fmt.Sprintf("node-%04d", n)
		w.node(name).Labels = map[string]string{"half": fmt.Sprint(n % 2), "pool": "all", "kubernetes.io/hostname": name}
		w.run(name, 10, 0, labelled("app", "web"))
		w.run(name, 10, 1000, labelled("app", "postgres"))
		w.run(name, 6, 2000)
		w.run(name, 4, 2000001000, ofDaemonSet)
	}
	plan := []v1alpha1.DrainPlanEntry{
		entryFor("web", v1alpha1.PodTypeDefault, 500), entry(v1alpha1.PodTypeDefault, 500),
		entryFor("postgres", v1alpha1.PodTypeDefault, 1500), entry(v1alpha1.PodTypeDefault, 1500),
	}
	w.maintenance("all", v1alpha1.StageDrain, nil).Spec.NodeSelector = labelledNodes("pool", "all")
	w.maintenance("half", v1alpha1.StageDrain, plan).Spec.NodeSelector = labelledNodes("half", "1")
	w.maintenance("idle", v1alpha1.StageIdle, nil).Spec.NodeSelector = labelledNodes("pool", "all")
	b.Helper()
	return w
}

func labelledNodes(key, value string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
	}}}
}

// BenchmarkDecide is a pass in the middle of a drain of everything.
func BenchmarkDecide(b *testing.B) {
	w := fleet(b)
	for range 3 {
		w.pass()
	}
	snapshot := w.snapshot()
	b.ReportAllocs()
	goal.Time(b, 100*time.Millisecond)
	for b.Loop() {
		if decision := maintenance.Decide(snapshot); len(decision.Maintenances) != 3 {
			b.Fatal("a maintenance is missing")
		}
	}
}

// BenchmarkDecideCrowd is a decision about 1,000 maintenances of the same node.
func BenchmarkDecideCrowd(b *testing.B) {
	const crowd = 1000
	w := newWorld(nil, "one")
	w.runners.DaemonSets = true
	w.run("one", 20, 0, labelled("app", "web"))
	w.run("one", 10, 2000)
	for n := range crowd {
		w.maintenance(fmt.Sprintf("m-%04d", n), v1alpha1.StageDrain, []v1alpha1.DrainPlanEntry{entry("Default", int32(n))}, "one")
	}
	for range 3 {
		w.pass()
	}
	snapshot := w.snapshot()
	b.ReportAllocs()
	goal.Time(b, 200*time.Millisecond)
	for b.Loop() {
		if decision := maintenance.Decide(snapshot); len(decision.Maintenances) != crowd {
			b.Fatal("a maintenance is missing")
		}
	}
}
