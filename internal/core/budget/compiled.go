package budget

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Compiled are the budgets of one namespace with their selectors read, for asking
// about many pods. It is not changed.
type Compiled struct {
	budgets   []*policyv1.PodDisruptionBudget
	selectors []labels.Selector
}

// Compile reads the selectors of the budgets of a namespace. One that is invalid
// is left out: it matches no pod.
func Compile(budgets []*policyv1.PodDisruptionBudget) Compiled {
	var c Compiled
	for _, b := range slices.SortedFunc(slices.Values(budgets), func(a, b *policyv1.PodDisruptionBudget) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil {
			c.budgets, c.selectors = append(c.budgets, b), append(c.selectors, selector)
		}
	}
	return c
}

// Applying is Applying for a pod of the namespace.
func (c Compiled) Applying(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var applying []*policyv1.PodDisruptionBudget
	for n, selector := range c.selectors {
		if selector.Matches(labels.Set(pod.Labels)) {
			applying = append(applying, c.budgets[n])
		}
	}
	return applying
}
