package validate_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// wants is a selector of one expression.
func wants(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func TestMachineDrainRuleRefusesMalformedSelectors(t *testing.T) {
	near := wants("app", "Near", "web")
	for name, tt := range map[string]struct {
		spec v1alpha1.MachineDrainRuleSpec
		want []string
	}{
		"nothing is selected": {},
		"all four are fine": {
			spec: v1alpha1.MachineDrainRuleSpec{
				Machines: []v1alpha1.MachineDrainRuleMachineSelector{{Selector: wants("os", "In", "linux"), ClusterSelector: wants("stage", "NotIn", "test")}},
				Pods:     []v1alpha1.MachineDrainRulePodSelector{{Selector: wants("app", "Exists"), NamespaceSelector: wants("team", "DoesNotExist")}},
				Nodes:    []v1alpha1.MachineDrainRuleNodeSelector{{Selector: &metav1.LabelSelector{}}},
			},
		},
		"an operator that there is not, in all four and for nodes": {
			spec: v1alpha1.MachineDrainRuleSpec{
				Machines: []v1alpha1.MachineDrainRuleMachineSelector{{}, {Selector: near, ClusterSelector: near}},
				Pods:     []v1alpha1.MachineDrainRulePodSelector{{Selector: near}, {NamespaceSelector: near}},
				Nodes:    []v1alpha1.MachineDrainRuleNodeSelector{{}, {}, {Selector: near}},
			},
			want: []string{
				"spec.machines[1].selector.matchExpressions[0].operator: Invalid value",
				"spec.machines[1].clusterSelector.matchExpressions[0].operator: Invalid value",
				"spec.pods[0].selector.matchExpressions[0].operator: Invalid value",
				"spec.pods[1].namespaceSelector.matchExpressions[0].operator: Invalid value",
				"spec.nodes[2].selector.matchExpressions[0].operator: Invalid value",
			},
		},
		"values that are missing or too many": {
			spec: v1alpha1.MachineDrainRuleSpec{Pods: []v1alpha1.MachineDrainRulePodSelector{
				{Selector: wants("app", "In"), NamespaceSelector: wants("app", "Exists", "web")},
			}},
			want: []string{
				"spec.pods[0].selector.matchExpressions[0].values: Required value",
				"spec.pods[0].namespaceSelector.matchExpressions[0].values: Forbidden",
			},
		},
		"labels that cannot be, by key": {
			spec: v1alpha1.MachineDrainRuleSpec{Pods: []v1alpha1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{
				MatchLabels:      map[string]string{"c": "-", "b": "+", "a": "fine"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "", Operator: "In", Values: []string{"fine", "*"}}},
			}}}},
			want: []string{
				"spec.pods[0].selector.matchLabels: Invalid value",
				"spec.pods[0].selector.matchLabels: Invalid value",
				"spec.pods[0].selector.matchExpressions[0].key: Invalid value",
				"spec.pods[0].selector.matchExpressions[0].key: Invalid value",
				"spec.pods[0].selector.matchExpressions[0].values[1]: Invalid value",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, tt.want, validate.MachineDrainRule(&v1alpha1.MachineDrainRule{Spec: tt.spec}))
		})
	}
}

// FuzzMachineDrainRule: what is let in can be compiled, and what can be compiled
// is let in.
func FuzzMachineDrainRule(f *testing.F) {
	f.Add("app", "In", "web", "app", "web")
	f.Add("example.com/app", "Exists", "", "", "-")
	f.Add("a b", "Near", "*", "/", "")
	f.Fuzz(func(t *testing.T, key, operator, value, label, labelValue string) {
		selector := wants(key, metav1.LabelSelectorOperator(operator), value)
		if value == "" {
			selector.MatchExpressions[0].Values = nil
		}
		selector.MatchLabels = map[string]string{label: labelValue}
		spec := v1alpha1.MachineDrainRuleSpec{Nodes: []v1alpha1.MachineDrainRuleNodeSelector{{Selector: selector}}}
		found := validate.MachineDrainRule(&v1alpha1.MachineDrainRule{Spec: spec})
		if _, err := metav1.LabelSelectorAsSelector(selector); (err == nil) != (len(found) == 0) {
			t.Errorf("%s: the faults are %v, and compiling it says %v", metav1.FormatLabelSelector(selector), found, err)
		}
	})
}

func TestMachineDrainRuleWithoutEffectWarns(t *testing.T) {
	all := &metav1.LabelSelector{}
	nodes := v1alpha1.MachineDrainRuleSpec{Nodes: []v1alpha1.MachineDrainRuleNodeSelector{{Selector: all}}}
	both := nodes
	both.Machines = []v1alpha1.MachineDrainRuleMachineSelector{{Selector: all}}
	for name, tt := range map[string]struct {
		namespace string
		spec      v1alpha1.MachineDrainRuleSpec
		want      int
	}{
		"for nodes, in Ebbtide's namespace": {"ebbtide-system", nodes, 0},
		"for nodes, elsewhere":              {"fleet", nodes, 1},
		"for nodes and Machines, elsewhere": {"fleet", both, 1},
		"for everything, in our namespace":  {"ebbtide-system", v1alpha1.MachineDrainRuleSpec{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			rule := &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: tt.namespace}, Spec: tt.spec}
			expectWarnings(t, tt.want, validate.MachineDrainRuleWarnings(rule, "ebbtide-system"))
		})
	}
}
