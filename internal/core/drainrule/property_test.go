package drainrule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
)

// selected is whether a selector selects labels. What is wrong with it selects as
// guessed, and so does all of it if the labels are unknown (nil).
func selected(s *metav1.LabelSelector, of map[string]string, guess bool) bool {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return true
	}
	if of == nil {
		return guess
	}
	for key, value := range s.MatchLabels {
		if of[key] != value {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		one, err := metav1.LabelSelectorAsSelector(expression(e.Key, e.Operator, e.Values...))
		if err != nil && !guess || err == nil && !one.Matches(labels.Set(of)) {
			return false
		}
	}
	return true
}

type place struct{ machine, cluster, pod, namespace map[string]string }

func (p place) meant(r *v1alpha1.MachineDrainRule, guess bool) bool {
	machine, selects := len(r.Spec.Machines)+len(r.Spec.Nodes) == 0, len(r.Spec.Pods) == 0
	for _, e := range r.Spec.Machines {
		machine = machine || selected(e.Selector, p.machine, guess) && selected(e.ClusterSelector, p.cluster, guess)
	}
	for _, e := range r.Spec.Pods {
		selects = selects || selected(e.Selector, p.pod, guess) && selected(e.NamespaceSelector, p.namespace, guess)
	}
	return machine && selects
}

// bruteForce is the first rule that is meant whatever is guessed; unclear is true
// if one before may be meant.
func (p place) bruteForce(all rules) (first *v1alpha1.MachineDrainRule, unclear bool) {
	for _, rule := range all {
		switch {
		case p.meant(rule, false):
			return rule, false
		case p.meant(rule, true):
			return rule, true
		}
	}
	return nil, false
}

// lowest is the lowest order of all rules that may be meant, up to the first that
// is meant for sure; 0 is that of the default behind them.
func (p place) lowest(all rules) (lowest int32) {
	lowest = drainrule.NoOrder
	for _, rule := range all {
		if p.meant(rule, true) {
			lowest = min(lowest, *rule.Spec.Drain.Order)
		}
		if p.meant(rule, false) {
			return lowest
		}
	}
	return min(lowest, 0)
}

type dice struct{ *rand.Rand }

func (d dice) one(percent int) bool { return d.IntN(100) < percent }

func (d dice) labels() map[string]string {
	return map[string]string{"x": fmt.Sprint(d.IntN(2)), "y": fmt.Sprint(d.IntN(2))}
}

func (d dice) selector() *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	if d.one(30) {
		return nil
	}
	if d.one(60) {
		s.MatchLabels = map[string]string{"x": fmt.Sprint(d.IntN(2))}
	}
	if d.one(40) {
		operator := []metav1.LabelSelectorOperator{"In", "NotIn", "Near"}[d.IntN(3)]
		s.MatchExpressions = expression("y", operator, fmt.Sprint(d.IntN(2))).MatchExpressions
	}
	return s
}

func (d dice) rules() (all rules) {
	for n := range d.IntN(5) {
		rule := aRule(fmt.Sprint(n), ordered(int32(d.IntN(7)-3)))
		for range d.IntN(3) {
			machines(d.selector(), d.selector())(rule)
		}
		for range d.IntN(3) {
			pods(d.selector(), d.selector())(rule)
		}
		if d.one(20) {
			nodes(d.selector())(rule)
		}
		all = append(all, rule)
	}
	return all
}

func TestRulesAgainstBruteForce(t *testing.T) {
	for seed := range uint64(5000) {
		d := dice{rand.New(rand.NewPCG(seed, 40))}
		all, at := d.rules(), place{d.labels(), d.labels(), d.labels(), d.labels()}
		known := drainrule.Facts{Namespaces: map[string]map[string]string{"shop": at.namespace}}
		if d.one(20) {
			known, at.namespace = blind(), nil
		}
		pod := aPod()
		pod.Labels = at.pod

		want, unclear := at.bruteForce(all)
		got := drainrule.ForMachine(all, at.machine, at.cluster).Ask(pod, known)

		var object v1alpha1.BlockerObject
		if want != nil {
			object = ruleObject(want.Name)
		}
		if got.Object != object || (got.Cause != "") != unclear {
			t.Fatalf("seed %d: got %+v, want object %v, unclear %t", seed, got, object, unclear)
		}
		if order := at.lowest(all); want != nil && got.Order != order {
			t.Fatalf("seed %d: got %+v, want order %d of rule %s or of those behind it", seed, got, order, want.Name)
		}
		if isDefault := got.Reason == "" && got.Cause == ""; isDefault != (want == nil) {
			t.Fatalf("seed %d: got %+v, want the default only without a rule", seed, got)
		}
	}
}

func fleetRules() (all rules) {
	for n := range 10 {
		rule := aRule(fmt.Sprint(n), ordered(int32(n)), nodes(everything))
		for entry := range 3 {
			pods(is("app", fmt.Sprintf("app-%d-%d", n, entry)), is("team", "sales"))(rule)
		}
		all = append(all, rule)
	}
	return append(all, aRule("last", nodes(everything), pods(is("app", "web"), is("team", "sales"))))
}

func TestAskingCostsNoMemory(t *testing.T) {
	pod, known := aPod(), facts()
	for name, rules := range map[string]drainrule.Rules{
		"no rules":  drainrule.Compile(nil).ForNode(nil),
		"ten rules": drainrule.Compile(fleetRules()).ForNode(nil),
	} {
		if allocations := testing.AllocsPerRun(100, func() { rules.Ask(pod, known) }); allocations > 0 {
			t.Errorf("%s: %.0f allocations for a pod, want none", name, allocations)
		}
	}
	none := drainrule.Compile(nil)
	if allocations := testing.AllocsPerRun(100, func() { none.ForNode(nil) }); allocations > 0 {
		t.Errorf("%.0f allocations for a node without rules, want none", allocations)
	}
}

// BenchmarkAsk is a fleet of 5,000 nodes with 30 pods each.
func BenchmarkAsk(b *testing.B) {
	set, pod, known := drainrule.Compile(fleetRules()), aPod(), facts()
	b.ReportAllocs()
	for b.Loop() {
		for range 5000 {
			rules := set.ForNode(nil)
			for range 30 {
				if rules.Ask(pod, known).Behavior != v1alpha1.DrainBehaviorSkip {
					b.Fatal("the last rule is not found")
				}
			}
		}
	}
}
