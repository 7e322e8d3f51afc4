package validate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// wants is a selector of one expression.
func wants(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func faults(spec v1alpha1.MachineDrainRuleSpec) (words []string) {
	for _, fault := range validate.MachineDrainRule(&v1alpha1.MachineDrainRule{Spec: spec}) {
		words = append(words, fault.Error())
	}
	return words
}

func TestSelectorsOfAMachineDrainRule(t *testing.T) {
	const notAnOperator = `: Invalid value: "Near": not a valid selector operator`
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
				"spec.machines[1].selector.matchExpressions[0].operator" + notAnOperator,
				"spec.machines[1].clusterSelector.matchExpressions[0].operator" + notAnOperator,
				"spec.pods[0].selector.matchExpressions[0].operator" + notAnOperator,
				"spec.pods[1].namespaceSelector.matchExpressions[0].operator" + notAnOperator,
				"spec.nodes[2].selector.matchExpressions[0].operator" + notAnOperator,
			},
		},
		"values that are missing or too many": {
			spec: v1alpha1.MachineDrainRuleSpec{Pods: []v1alpha1.MachineDrainRulePodSelector{
				{Selector: wants("app", "In"), NamespaceSelector: wants("app", "Exists", "web")},
			}},
			want: []string{
				"spec.pods[0].selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
				"spec.pods[0].namespaceSelector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
			},
		},
		"labels that cannot be, by key": {
			spec: v1alpha1.MachineDrainRuleSpec{Pods: []v1alpha1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{
				MatchLabels:      map[string]string{"c": "-", "b": "+", "a": "fine"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "", Operator: "In", Values: []string{"fine", "*"}}},
			}}}},
			want: []string{
				`spec.pods[0].selector.matchLabels: Invalid value: "+": ` + valueRule,
				`spec.pods[0].selector.matchLabels: Invalid value: "-": ` + valueRule,
				`spec.pods[0].selector.matchExpressions[0].key: Invalid value: "": name part must be non-empty`,
				`spec.pods[0].selector.matchExpressions[0].key: Invalid value: "": ` + nameRule,
				`spec.pods[0].selector.matchExpressions[0].values[1]: Invalid value: "*": ` + valueRule,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, faults(tt.spec)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
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
		found := faults(v1alpha1.MachineDrainRuleSpec{Nodes: []v1alpha1.MachineDrainRuleNodeSelector{{Selector: selector}}})
		if _, err := metav1.LabelSelectorAsSelector(selector); (err == nil) != (len(found) == 0) {
			t.Errorf("%s: the faults are %v, and compiling it says %v", metav1.FormatLabelSelector(selector), found, err)
		}
	})
}

const (
	valueRule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with " +
		"an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
	nameRule = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
		"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
