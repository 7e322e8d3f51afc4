package blocker

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Retained returns why a pod stays on its node on purpose, by rule if one skips it, and what
// changes that.
func Retained(why v1alpha1.BlockerType, pod *corev1.Pod, rule v1alpha1.BlockerObject) v1alpha1.Blocker {
	b := v1alpha1.Blocker{Type: why, Object: ofOwner(pod), PodCount: 1}
	podType := podclass.Type(pod)
	unlabel := func(label string) string {
		return command.Of("To have it leave: kubectl -n %s label pod %s %s-", pod.Namespace, pod.Name, label)
	}
	switch why {
	case v1alpha1.BlockerNodeUnreachable:
		b.Message = "The pod terminates on a node that is not responding and goes with its Machine, so it is not waited for."
	case v1alpha1.RetainedDrainLabel:
		b.Message = "The pod stays, as its label " + v1alpha1.DrainLabel + " asks."
		b.Suggestion = unlabel(v1alpha1.DrainLabel)
	case v1alpha1.RetainedInPlace:
		b.Message = "The pod stays while the node is away, as its label " + v1alpha1.OnUpgradeLabel + " asks."
		b.Suggestion = unlabel(v1alpha1.OnUpgradeLabel)
	case v1alpha1.RetainedDrainRule:
		b.Message = "The pod stays, as " + ObjectText(rule) + " skips it."
		b.Suggestion = command.Of("To have it leave, change the rule: kubectl -n %s edit machinedrainrule %s", rule.Namespace, rule.Name)
	case v1alpha1.RetainedDrainDepth:
		b.Message = "The pod is of type " + string(podType) + ", and spec.drainDepth ends before."
		b.Suggestion = "To have it leave, set spec.drainDepth to " + string(podType) + "."
	default:
		b.Message = "The pod is of type " + string(podType) + ", and no component prevents its return."
		b.Suggestion = "To have it leave, run an evacuator for it that registers on the pod by annotation " + v1alpha1.EvacuatorAnnotationPrefix + "<class>."
		if podType == v1alpha1.PodTypeStatic {
			b.Suggestion = "To have it leave, run the node agent on the node, or take the pod's manifest away from its kubelet."
		}
	}
	return b
}

// RetainedOf returns why this pod stays, by its label or by what the node's status says of its
// owner's pods. Reasons of other pods with other labels or types do not count.
func RetainedOf(said []v1alpha1.Blocker, pod *corev1.Pod, depth v1alpha1.PodType) (v1alpha1.Blocker, bool) {
	if behavior, _ := podclass.DrainLabel(pod); behavior == v1alpha1.DrainBehaviorSkip {
		return Retained(v1alpha1.RetainedDrainLabel, pod, v1alpha1.BlockerObject{}), true
	}
	if deeper(podclass.Type(pod), depth) {
		return Retained(v1alpha1.RetainedDrainDepth, pod, v1alpha1.BlockerObject{}), true
	}
	for _, b := range said {
		if CompareObjects(b.Object, ofOwner(pod)) != 0 || !fits(b.Type, pod) {
			continue
		}
		b.PodCount = 1
		if b.Type == v1alpha1.RetainedInPlace {
			// It names another pod in the command that helps.
			return Retained(b.Type, pod, v1alpha1.BlockerObject{}), true
		}
		return b, true
	}
	return v1alpha1.Blocker{}, false
}

func fits(why v1alpha1.BlockerType, pod *corev1.Pod) bool {
	switch why {
	case v1alpha1.RetainedInPlace:
		stays, _ := podclass.OnUpgrade(pod)
		return stays
	case v1alpha1.BlockerNodeUnreachable:
		return pod.DeletionTimestamp != nil
	case v1alpha1.RetainedNoEvacuator:
		return podclass.Type(pod) != v1alpha1.PodTypeDefault
	}
	return why == v1alpha1.RetainedDrainRule
}

// deeper reports whether pods of a type are below the depth to which a maintenance drains.
func deeper(podType, depth v1alpha1.PodType) bool {
	order := map[v1alpha1.PodType]int{v1alpha1.PodTypeDefault: 0, v1alpha1.PodTypeDaemonSet: 1, v1alpha1.PodTypeStatic: 2}
	if depth == "" {
		return false
	}
	return order[podType] > order[depth]
}
