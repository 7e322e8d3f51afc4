package blocker

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/command"
)

// advise returns what lets the budget allow the eviction of the pod.
func advise(pod *corev1.Pod, b *policyv1.PodDisruptionBudget, never bool) string {
	switch {
	case unready(pod) && !budget.LetsUnreadyGo(b):
		return "The pod is not ready itself. Get it ready, or let pods go that are not: " + patch(b, `"unhealthyPodEvictionPolicy":"AlwaysAllow"`)
	case budget.Uncountable(b):
		return "The desired number of replicas is unknown, as for pods of a Job. Count pods: " +
			patch(b, `"minAvailable":0,"maxUnavailable":null`)
	case never:
		return loosen(pod, b)
	}
	return SeePods(b)
}

// unready is true of a pod of which it is known: it serves nobody.
func unready(pod *corev1.Pod) bool {
	for n := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[n]; c.Type == corev1.PodReady {
			return c.Status != corev1.ConditionTrue
		}
	}
	return false
}

// loosen returns the smallest change that lets a budget allow one disruption.
func loosen(pod *corev1.Pod, b *policyv1.PodDisruptionBudget) string {
	expected, floor := b.Status.ExpectedPods, b.Spec.MinAvailable
	spec := `"minAvailable":null,"maxUnavailable":1`
	switch owner := metav1.GetControllerOfNoCopy(pod); {
	case expected == 0:
		return "Give the pods a controller, or count pods: " + patch(b, `"minAvailable":0,"maxUnavailable":null`)
	case floor == nil:
		spec = `"maxUnavailable":1`
	case floor.Type == intstr.String: // It counts replicas, and has found some.
	case owner == nil:
		return "Such pods are not replaced. Start others, or allow their eviction: " + patch(b, `"minAvailable":0`)
	case !scaled(owner):
		spec = fmt.Sprintf(`"minAvailable":%d`, expected-1)
	}
	if replicas, help := budget.Enough(b); help {
		return fmt.Sprintf("Run at least %d replicas, or let one pod be unavailable: ", replicas) + patch(b, spec)
	}
	return "Let one pod be unavailable: " + patch(b, spec)
}

// scaled reports whether the controller has replicas. Budgets that count replicas fail for other
// pods.
func scaled(owner *metav1.OwnerReference) bool {
	switch owner.Kind {
	case "ReplicaSet", "StatefulSet", "ReplicationController":
		return true
	}
	return false
}

func patch(b *policyv1.PodDisruptionBudget, spec string) string {
	return command.Of("kubectl -n %s patch poddisruptionbudget %s --type=merge -p %s", b.Namespace, b.Name, command.Quote(`{"spec":{`+spec+"}}"))
}

// SeePods returns how to find out which pods of a budget are not ready.
func SeePods(b *policyv1.PodDisruptionBudget) string {
	const see = "It opens as soon as more of its pods are ready. See which are not: "
	if s := b.Spec.Selector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		return see + command.Of("kubectl -n %s get pods -l %s", b.Namespace, command.Quote(metav1.FormatLabelSelector(s)))
	}
	return see + command.Of("kubectl -n %s get pods", b.Namespace)
}
