package budget

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/internal/core/labelindex"
)

// Compiled holds budgets with parsed selectors for fast lookups.
type Compiled struct {
	index labelindex.Index[*compiled]
}

type compiled struct {
	budget   *policyv1.PodDisruptionBudget
	selector labels.Selector
}

// Compile parses the selectors of budgets. An invalid one matches no pod.
func Compile(budgets []*policyv1.PodDisruptionBudget) Compiled {
	var c Compiled
	for _, b := range slices.SortedFunc(slices.Values(budgets), byName) {
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil {
			c.index.Put(&compiled{b, selector}, labelindex.OfSelector(selector)...)
		}
	}
	return c
}

// Applying returns the budgets that protect the pod, by name.
func (c Compiled) Applying(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var applying []*policyv1.PodDisruptionBudget
	for _, one := range c.index.Candidates(pod.Labels) {
		if one.budget.Namespace == pod.Namespace && one.selector.Matches(labels.Set(pod.Labels)) {
			applying = append(applying, one.budget)
		}
	}
	return applying
}
