package maintenance_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// brokenSelector is what only a missing webhook lets in.
var brokenSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}

// rule makes other rules. Some cannot be understood.
func (s *simulation) rule() {
	s.rules = nil
	for n := range 1 + s.random.IntN(4) {
		rule := newRule(fmt.Sprint(n), pick(s, []v1alpha1.DrainBehavior{"Drain", "Drain", "Skip", "WaitCompleted"}))
		if rule.Spec.Drain.Behavior == v1alpha1.DrainBehaviorDrain {
			rule.Spec.Drain.Order = pick(s, []*int32{nil, new(int32(-2)), new(int32(3)), new(int32(4))})
		}
		if s.chance(20) {
			rule.Spec.Nodes[0].Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "node-1"}}
		}
		if s.chance(80) {
			selectPods(rule, pick(s, []string{"x", "y", "z"}))
		}
		if s.chance(20) {
			rule.Spec.Pods = append(rule.Spec.Pods, v1alpha1.MachineDrainRulePodSelector{Selector: brokenSelector})
		}
		s.rules = append(s.rules, rule)
	}
}

// changeRules may make other rules, where there are any.
func (s *simulation) changeRules() {
	if len(s.rules) > 0 && s.chance(5) {
		s.rule()
	}
}

// repairRules deletes the rules that nobody understands.
func (s *simulation) repairRules() {
	s.rules = slices.DeleteFunc(s.rules, func(r *v1alpha1.MachineDrainRule) bool {
		return slices.ContainsFunc(r.Spec.Pods, func(e v1alpha1.MachineDrainRulePodSelector) bool { return e.Selector == brokenSelector })
	})
}

// treatment is what labels and rules say of a pod.
func (w *world) treatment(node string, pod *corev1.Pod) drainrule.Treatment {
	return drainrule.Compile(w.rules).ForNode(w.find(node).Labels).Ask(pod, drainrule.Facts{Namespaces: w.namespaces})
}

// checkTurns: no pod leaves while one of a lower order is there that leaves too.
func (s *simulation) checkTurns(d maintenance.NodeDecision, decision maintenance.Decision) {
	target := targetOf(d.Node.Name, decision)
	for _, earlier := range s.pods[d.Node.Name] {
		treatment := s.treatment(d.Node.Name, earlier)
		if podclass.Terminal(earlier) || !target.Covers(earlier) || !s.awaited(d.Node.Name, earlier) {
			continue
		}
		for _, pod := range requested(d.Evacuate) {
			if order := s.treatment(d.Node.Name, pod).Order; order > treatment.Order {
				s.t.Errorf("pod %s of order %d is evacuated from node %s before pod %s of order %d is gone", pod.Name, order, d.Node.Name, earlier.Name, treatment.Order)
			}
		}
	}
}

// targetOf is what the statuses of a decision say of a node.
func targetOf(node string, decision maintenance.Decision) drainplan.Set {
	var lines []v1alpha1.DrainPlanEntry
	for _, m := range decision.Maintenances {
		for _, status := range m.Status.NodeStatuses {
			if drains(m.Maintenance) && status.NodeRef.Name == node {
				lines = append(lines, status.DrainTargets...)
			}
		}
	}
	return drainplan.NewSet(drainplan.Parse(lines)...)
}

// awaited returns true if a maintenance in Drain waits for the pod.
func (s *simulation) awaited(node string, pod *corev1.Pod) bool {
	return slices.ContainsFunc(s.maintenances, func(m *v1alpha1.NodeMaintenance) bool {
		return drains(m) && slices.Contains(s.matched(m), node) && s.waitsFor(m, node, pod)
	})
}

// selectors are those of drain plans, some in several words.
var selectors = []*metav1.LabelSelector{
	{MatchLabels: map[string]string{"app": "x"}},
	appIn("x"), appIn("x", "y"),
	{MatchLabels: map[string]string{"app": "y"}},
	{MatchLabels: map[string]string{"app": "z"}},
	appIn("z", "x"),
}

func appIn(values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values},
	}}
}
