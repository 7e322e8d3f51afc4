package nodedrain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
)

// Of the pods that stay, those are known that only a rule has skipped.
func TestPodsThatARuleSkips(t *testing.T) {
	t.Parallel()
	rule := &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "stays"}}
	rule.Spec.Drain.Behavior = v1alpha1.DrainBehaviorSkip
	rule.Spec.Pods = []v1alpha1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "stays"}}}}
	d := Decide(Snapshot{
		Now: now, Node: &corev1.Node{}, Rules: drainrule.ForMachine([]*v1alpha1.MachineDrainRule{rule}, nil, nil),
		Pods: []*corev1.Pod{labelled("app", "stays", pod("by-rule")), skipped(labelled("app", "stays", pod("by-label"))), pod("goes")},
	})
	if len(d.Skipped) != 2 || len(d.SkippedByRule) != 1 || d.SkippedByRule[0].Name != "by-rule" {
		t.Errorf("%d pods are skipped, and by a rule %v", len(d.Skipped), d.SkippedByRule)
	}
}
