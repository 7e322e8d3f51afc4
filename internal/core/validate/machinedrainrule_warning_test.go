package validate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

func TestMachineDrainRuleWarnings(t *testing.T) {
	all := &metav1.LabelSelector{}
	nodes := v1alpha1.MachineDrainRuleSpec{Nodes: []v1alpha1.MachineDrainRuleNodeSelector{{Selector: all}}}
	both := nodes
	both.Machines = []v1alpha1.MachineDrainRuleMachineSelector{{Selector: all}}
	const forgot = "spec.nodes: without nodes no NodeMaintenance obeys this rule, it is only for the Machines of this namespace; to mean all nodes give nodes: [{selector: {}}]"
	const obeys = "spec.nodes: a NodeMaintenance obeys only the rules in namespace ebbtide-system; here, in namespace fleet, "
	for name, tt := range map[string]struct {
		namespace string
		spec      v1alpha1.MachineDrainRuleSpec
		want      []string
	}{
		"for everything":                      {"fleet", v1alpha1.MachineDrainRuleSpec{}, nil},
		"for nodes, in Ebbtide's namespace":   {"ebbtide-system", nodes, nil},
		"for nodes, elsewhere":                {"fleet", nodes, []string{obeys + "this one does nothing, because without machines it is not for Machines either"}},
		"for nodes and Machines, elsewhere":   {"fleet", both, []string{obeys + "the nodes of this one mean nothing"}},
		"for everything, in our namespace":    {"ebbtide-system", v1alpha1.MachineDrainRuleSpec{}, []string{forgot}},
		"for both, in Ebbtide's namespace":    {"ebbtide-system", both, nil},
		"for Machines, in another namespaces": {"fleet", v1alpha1.MachineDrainRuleSpec{Machines: both.Machines}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rule := &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: tt.namespace}, Spec: tt.spec}
			if diff := cmp.Diff(tt.want, validate.MachineDrainRuleWarnings(rule, "ebbtide-system")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
