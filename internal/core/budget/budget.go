// Package budget says which PodDisruptionBudgets apply to a pod, whether one can ever allow a
// disruption, and how many it allows now. It reads a budget as the eviction API does. A status
// that is older than the spec is unknown, neither yes nor no. The numbers are those of the
// disruption controller.
package budget

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Applying returns the budgets that protect the pod, by name. As in policy/v1, an absent selector
// matches no pod, an empty one every pod of the namespace, an invalid one none. For many pods, use
// Compiled.
func Applying(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	var applying []*policyv1.PodDisruptionBudget
	for _, b := range budgets {
		if b.Namespace == pod.Namespace && selects(b, pod) {
			applying = append(applying, b)
		}
	}
	slices.SortFunc(applying, byName)
	return applying
}

func byName(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) }

func selects(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if b.Spec.Selector == nil {
		return false
	}
	for key, value := range b.Spec.Selector.MatchLabels {
		if has, labelled := pod.Labels[key]; !labelled || has != value {
			return false
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// Allowed returns the allowed disruptions; unknown while the status is older than the spec.
func Allowed(b *policyv1.PodDisruptionBudget) (disruptions int32, known bool) {
	if !fresh(b) {
		return 0, false
	}
	return max(b.Status.DisruptionsAllowed, 0), true
}

func fresh(b *policyv1.PodDisruptionBudget) bool {
	return b.Status.ObservedGeneration > 0 && b.Status.ObservedGeneration >= b.Generation
}

// Never reports whether the budget can never allow a disruption unless its spec or the number of
// replicas changes, and why. A budget whose status is stale, or that allows a disruption now, can.
func Never(b *policyv1.PodDisruptionBudget) (why string, never bool) {
	allowed, known := Allowed(b)
	if !known || allowed > 0 {
		return "", false
	}
	switch {
	case countsNobody(b):
		return "it counts in replicas and its pods have no controller", true
	case b.Spec.MaxUnavailable != nil:
		return neverUnavailable(b.Spec.MaxUnavailable)
	case b.Spec.MinAvailable != nil:
		return neverSpare(b.Spec.MinAvailable, b.Status.ExpectedPods)
	default:
		return "", false
	}
}

// countsNobody reports whether a budget counts replicas but its pods have no scalable controller.
func countsNobody(b *policyv1.PodDisruptionBudget) bool {
	return ofReplicas(b) && b.Status.ExpectedPods == 0 && b.Status.CurrentHealthy > 0
}

// ofReplicas returns true if the limit of the budget counts replicas, not pods.
func ofReplicas(b *policyv1.PodDisruptionBudget) bool {
	return b.Spec.MaxUnavailable != nil || b.Spec.MinAvailable != nil && b.Spec.MinAvailable.Type == intstr.String
}

// Uncountable reports whether the disruption controller cannot determine the expected number of pods
// and therefore allows nothing.
func Uncountable(b *policyv1.PodDisruptionBudget) bool {
	allowed := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	return ofReplicas(b) && allowed != nil && allowed.Status == metav1.ConditionFalse && allowed.Reason == policyv1.SyncFailedReason
}

// LetsUnreadyGo reports whether the budget allows to evict pods that are not ready.
func LetsUnreadyGo(b *policyv1.PodDisruptionBudget) bool {
	return b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
}

func neverUnavailable(limit *intstr.IntOrString) (why string, never bool) {
	n, err := intstr.GetScaledValueFromIntOrPercent(limit, 100, true)
	if err != nil || n > 0 {
		return "", false
	}
	return fmt.Sprintf("maxUnavailable is %s: no pod may ever be disrupted", limit), true
}

func neverSpare(floor *intstr.IntOrString, expected int32) (why string, never bool) {
	needed, err := intstr.GetScaledValueFromIntOrPercent(floor, int(expected), true)
	switch {
	case err != nil:
		return "", false
	case floor.Type == intstr.String && !spares(floor, 100):
		return fmt.Sprintf("minAvailable is %s: no pod may ever be disrupted", floor), true
	case expected == 0 || needed < int(expected):
		return "", false
	}
	return fmt.Sprintf("minAvailable %s needs %d available pods and there are %d in all", floor, needed, expected), true
}

// spares returns true if one of so many pods may be missing, also if the limit cannot be read.
func spares(floor *intstr.IntOrString, expected int32) bool {
	needed, err := intstr.GetScaledValueFromIntOrPercent(floor, int(expected), true)
	return err != nil || needed < int(expected)
}

// mostAdded bounds the replicas that Enough adds. It suffices for each percentage that more replicas
// can help.
const mostAdded = 100

// Enough returns the fewest replicas with which the budget could allow a disruption.
func Enough(b *policyv1.PodDisruptionBudget) (replicas int32, help bool) {
	if b.Spec.MinAvailable == nil || countsNobody(b) {
		return 0, false
	}
	for n := b.Status.ExpectedPods + 1; n <= b.Status.ExpectedPods+mostAdded; n++ {
		if spares(b.Spec.MinAvailable, n) {
			return n, true
		}
	}
	return 0, false
}
