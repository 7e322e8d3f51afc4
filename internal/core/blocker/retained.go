package blocker

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Retained says why a pod stays on its node on purpose, and what would have it leave.
// Rule is the MachineDrainRule that has skipped it, if one has.
func Retained(why v1alpha1.BlockerType, pod *corev1.Pod, rule v1alpha1.BlockerObject) v1alpha1.Blocker {
	b := v1alpha1.Blocker{Type: why, Object: ofOwner(pod), PodCount: 1}
	podType := podclass.Type(pod)
	unlabel := "To have it leave: kubectl -n " + pod.Namespace + " label pod " + pod.Name + " "
	switch why {
	case v1alpha1.RetainedDrainLabel:
		b.Message = "The pod stays, as its label " + v1alpha1.DrainLabel + " asks."
		b.Suggestion = unlabel + v1alpha1.DrainLabel + "-"
	case v1alpha1.RetainedInPlace:
		b.Message = "The pod stays while the node is away, as its label " + v1alpha1.OnUpgradeLabel + " asks."
		b.Suggestion = unlabel + v1alpha1.OnUpgradeLabel + "-"
	case v1alpha1.RetainedDrainRule:
		b.Message = "The pod stays, as " + ObjectText(rule) + " skips it."
		b.Suggestion = "To have it leave, change the rule: kubectl -n " + rule.Namespace + " edit machinedrainrule " + rule.Name
	case v1alpha1.RetainedDrainDepth:
		b.Message = "The pod is of type " + string(podType) + ", and spec.drainDepth ends before."
		b.Suggestion = "To have it leave, set spec.drainDepth to " + string(podType) + "."
	default:
		b.Message = "The pod is of type " + string(podType) + ", and nobody keeps it from coming back."
		b.Suggestion = "To have it leave, run an evacuator for it that registers on the pod by annotation " + v1alpha1.EvacuatorAnnotationPrefix + "<class>."
		if podType == v1alpha1.PodTypeStatic {
			b.Suggestion = "To have it leave, run the node agent on the node, or take the pod's manifest away from its kubelet."
		}
	}
	return b
}
