package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

func drainRule(namespace string, spec v1alpha1.MachineDrainRuleSpec) *v1alpha1.MachineDrainRule {
	spec.Drain.Behavior = v1alpha1.DrainBehaviorSkip
	return &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rule"}, Spec: spec}
}

func TestARuleThatDoesNothingIsWarnedOf(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	user, warnings := listening(t, c)
	all := &metav1.LabelSelector{}
	rule := drainRule(namespace, v1alpha1.MachineDrainRuleSpec{Nodes: []v1alpha1.MachineDrainRuleNodeSelector{{Selector: all}}})
	must(t, user.Create(t.Context(), rule))
	want := []string{"spec.nodes: a NodeMaintenance obeys only the rules in namespace " + cluster.Account.Namespace + "; here, in namespace " + namespace +
		", this one does nothing, because without machines it is not for Machines either"}
	if diff := cmp.Diff(want, warnings.take()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	rule.Spec.Nodes = nil
	must(t, user.Update(t.Context(), rule))
	if got := warnings.take(); len(got) > 0 {
		t.Errorf("warned of %q, want nothing", got)
	}
	must(t, c.Client.Delete(t.Context(), rule))
}
