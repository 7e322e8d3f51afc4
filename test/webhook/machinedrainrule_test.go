package webhook

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

func drainRule(namespace string, spec v1alpha1.MachineDrainRuleSpec) *v1alpha1.MachineDrainRule {
	spec.Drain.Behavior = v1alpha1.DrainBehaviorSkip
	return &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rule"}, Spec: spec}
}

// A prefix that is too long is what the CRD does not find.
func TestAllSelectorsOfARuleAreRefusedTogether(t *testing.T) {
	c := newAPI(t)
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: strings.Repeat("long.", 50) + "example.com/tier", Operator: metav1.LabelSelectorOpExists},
	}}
	err := c.Client.Create(t.Context(), drainRule(c.Namespace(t), v1alpha1.MachineDrainRuleSpec{
		Machines: []v1alpha1.MachineDrainRuleMachineSelector{{Selector: bad, ClusterSelector: bad}},
		Pods:     []v1alpha1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{}}, {Selector: bad, NamespaceSelector: bad}},
		Nodes:    []v1alpha1.MachineDrainRuleNodeSelector{{Selector: bad}},
	}), client.DryRunAll)
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		t.Fatalf("error %v, want the rule refused", err)
	}
	var got []string
	for _, cause := range status.Status().Details.Causes {
		got = append(got, cause.Field)
		if !strings.Contains(cause.Message, "must be no more than 253") {
			t.Errorf("%s: %s", cause.Field, cause.Message)
		}
	}
	want := []string{
		"spec.machines[0].selector.matchExpressions[0].key",
		"spec.machines[0].clusterSelector.matchExpressions[0].key",
		"spec.pods[1].selector.matchExpressions[0].key",
		"spec.pods[1].namespaceSelector.matchExpressions[0].key",
		"spec.nodes[0].selector.matchExpressions[0].key",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
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
