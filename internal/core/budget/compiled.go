package budget

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Compiled are budgets with their selectors read, for asking about many pods. It is
// not changed.
type Compiled struct {
	budgets   []*policyv1.PodDisruptionBudget
	selectors []labels.Selector
}

// Compile reads the selectors of budgets. One that is invalid is left out: it
// matches no pod.
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

// Applying returns the budgets that protect the pod, as Applying does.
func (c Compiled) Applying(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var applying []*policyv1.PodDisruptionBudget
	for n, selector := range c.selectors {
		if c.budgets[n].Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			applying = append(applying, c.budgets[n])
		}
	}
	return applying
}
