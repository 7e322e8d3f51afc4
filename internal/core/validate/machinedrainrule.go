package validate

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// MachineDrainRule returns the errors in the selectors of a rule, in a stable order.
func MachineDrainRule(rule *v1alpha1.MachineDrainRule) field.ErrorList {
	var faults field.ErrorList
	spec := field.NewPath("spec")
	for n, entry := range rule.Spec.Machines {
		at := spec.Child("machines").Index(n)
		faults = append(faults, selector(entry.Selector, at.Child("selector"))...)
		faults = append(faults, selector(entry.ClusterSelector, at.Child("clusterSelector"))...)
	}
	for n, entry := range rule.Spec.Pods {
		at := spec.Child("pods").Index(n)
		faults = append(faults, selector(entry.Selector, at.Child("selector"))...)
		faults = append(faults, selector(entry.NamespaceSelector, at.Child("namespaceSelector"))...)
	}
	for n, entry := range rule.Spec.Nodes {
		faults = append(faults, selector(entry.Selector, spec.Child("nodes").Index(n).Child("selector"))...)
	}
	return faults
}

// selector returns the errors in a label selector, in a stable order.
func selector(s *metav1.LabelSelector, at *field.Path) (faults field.ErrorList) {
	if s == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		one := map[string]string{key: s.MatchLabels[key]}
		faults = append(faults, validation.ValidateLabels(one, at.Child("matchLabels"))...)
	}
	rest := &metav1.LabelSelector{MatchExpressions: s.MatchExpressions}
	return append(faults, validation.ValidateLabelSelector(rest, validation.LabelSelectorValidationOptions{}, at)...)
}
