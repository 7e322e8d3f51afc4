package maintenance_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// newRule is about all pods of all nodes.
func newRule(name string, behavior v1alpha1.DrainBehavior) *v1alpha1.MachineDrainRule {
	rule := &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: "ebbtide-system", Name: name}}
	rule.Spec.Drain.Behavior = behavior
	rule.Spec.Nodes = []v1alpha1.MachineDrainRuleNodeSelector{{Selector: &metav1.LabelSelector{}}}
	return rule
}

func selectPods(rule *v1alpha1.MachineDrainRule, app string) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	rule.Spec.Pods = append(rule.Spec.Pods, v1alpha1.MachineDrainRulePodSelector{Selector: selector})
}

// ruleFor is about the pods of one application on all nodes.
func ruleFor(app string, behavior v1alpha1.DrainBehavior) *v1alpha1.MachineDrainRule {
	rule := newRule(app, behavior)
	selectPods(rule, app)
	return rule
}

func orderOf(app string, order int32) *v1alpha1.MachineDrainRule {
	rule := ruleFor(app, v1alpha1.DrainBehaviorDrain)
	rule.Spec.Drain.Order = &order
	return rule
}

func broken(app string) *v1alpha1.MachineDrainRule {
	rule := ruleFor(app, v1alpha1.DrainBehaviorSkip)
	rule.Spec.Pods[0].Selector.MatchExpressions = brokenSelector.MatchExpressions
	return rule
}

func app(name string) func(*corev1.Pod) { return labelled("app", name) }

// requested are the pods that a pass asks to leave.
func asked(d maintenance.Decision) []string {
	var all []string
	for _, node := range d.Nodes {
		all = append(all, names(requested(node.Evacuate))...)
	}
	slices.Sort(all)
	return all
}

func (w *world) expectAsked(what string, want ...[]*corev1.Pod) {
	w.t.Helper()
	if diff := cmp.Diff(names(slices.Concat(want...)), asked(w.pass())); diff != "" {
		w.t.Errorf("%s: pods that are asked to leave (-want +got):\n%s", what, diff)
	}
}

func (w *world) expectLines(what string, m *v1alpha1.NodeMaintenance, want ...string) {
	w.t.Helper()
	w.pass()
	if diff := cmp.Diff(want, lines(m)); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestEvacuationsAreNotTakenBackForAnOrder(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	storage := w.run("one", 1, 0, app("portworx"))
	w.expectAsked("without rules", storage)
	w.rules = []*v1alpha1.MachineDrainRule{orderOf("portworx", 100)}
	web := w.run("one", 1, 0)
	decision := w.pass()
	if withdrawn := decision.Nodes[0].Withdraw; len(withdrawn) > 0 {
		t.Errorf("%d evacuations are withdrawn, want none", len(withdrawn))
	}
	if diff := cmp.Diff(names(web), asked(decision)); diff != "" {
		t.Errorf("pods that are asked to leave (-want +got):\n%s", diff)
	}
	w.expectLines("nobody waits who leaves already", m, "one 0+2 Evacuating [Default 1000000000]")
}

func TestABrokenRuleHoldsUpOnlyItsPods(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", drain, nil, "one")
	before := w.run("one", 1, 0, app("web"))
	w.pass()
	w.rules = []*v1alpha1.MachineDrainRule{broken("web"), orderOf("portworx", 100)}
	w.run("one", 2, 0, app("web"))
	db, storage := w.run("one", 1, 0, app("db")), w.run("one", 1, 0, app("portworx"))

	decision := w.pass()
	if diff := cmp.Diff(names(db), asked(decision)); diff != "" {
		t.Errorf("pods that are asked to leave (-want +got):\n%s", diff)
	}
	if withdrawn := decision.Nodes[0].Withdraw; len(withdrawn) > 0 {
		t.Errorf("the evacuation of %s is withdrawn, although nobody knows whether it may go on", before[0].Name)
	}
	w.remove(before[0].UID)
	w.remove(db[0].UID)
	w.expectAsked("storage does not leave under pods that nobody knows how to treat")

	w.expectLines("they are left", m, "one 3+0 Waiting for blocked pods. Pods of order 100 and later wait until those of order 0 are gone. [Default 1000000000]")
	if b := m.Status.NodeStatuses[0].Blockers; len(b) != 1 || b[0].Type != v1alpha1.BlockerDrainRuleUnclear || b[0].Object.Name != "web" || b[0].PodCount != 2 {
		t.Errorf("blockers are %+v, want one of two pods", b)
	}
	w.rules = nil
	if left := asked(w.pass()); len(left) != 3 || !slices.Contains(left, storage[0].Name) {
		t.Errorf("without the rule %v are asked to leave, want all three", left)
	}
}
