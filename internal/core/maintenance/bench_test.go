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

// BenchmarkDecideWithRules is the same with ten rules, half of them for each node
// and none for the namespace.
func BenchmarkDecideWithRules(b *testing.B) {
	w := fleet(b)
	for range 3 {
		w.pass()
	}
	for n := range 10 {
		rule := orderOf("web", int32(n))
		rule.Name = fmt.Sprint(n)
		rule.Spec.Nodes[0].Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"half": fmt.Sprint(n % 2)}}
		rule.Spec.Pods[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": fmt.Sprint(n)}}
		w.rules = append(w.rules, rule)
	}
	snapshot := w.snapshot()
	b.ReportAllocs()
	for b.Loop() {
		if decision := maintenance.Decide(snapshot); len(decision.Maintenances) != 3 {
			b.Fatal("a maintenance is missing")
		}
	}
}

// BenchmarkDecideFirst is the pass that starts the drain of everything.
func BenchmarkDecideFirst(b *testing.B) {
	snapshot := fleet(b).snapshot()
	b.ReportAllocs()
	for b.Loop() {
		if decision := maintenance.Decide(snapshot); len(decision.Nodes) != benchNodes {
			b.Fatal("a node is missing")
		}
	}
}

// BenchmarkDecideInPlace is a pass over nodes that all wait for locks: on each stay
// ten pods, under one budget of 20 in their namespace.
func BenchmarkDecideInPlace(b *testing.B) {
	w := newWorld(nil)
	w.runners.DaemonSets = true
	for n := range benchNodes {
		name := fmt.Sprintf("node-%04d", n)
		w.node(name).Labels = map[string]string{"pool": "all", "kubernetes.io/hostname": name}
		w.run(name, 10, 1000, stays, label("app", fmt.Sprint(n%20)))
		w.run(name, 20, 2000000000, ofDaemonSet)
	}
	for n := range 20 {
		w.budget(fmt.Sprint(n))
	}
	m := inPlace(w.maintenance("all", v1alpha1.StageDrain, nil), 300)
	m.Spec.NodeSelector, m.Spec.DrainDepth = labelledNodes("pool", "all"), v1alpha1.PodTypeDefault
	for range 3 {
		w.pass()
	}
	if len(w.records) != benchNodes {
		b.Fatalf("%d nodes wait for locks", len(w.records))
	}
	snapshot := w.snapshot()
	b.ReportAllocs()
	for b.Loop() {
		if decision := maintenance.Decide(snapshot); len(decision.Maintenances) != 1 {
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
