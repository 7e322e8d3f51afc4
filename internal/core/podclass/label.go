package podclass

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// DrainLabel returns the behavior in the drain label, by default Drain. It ignores case and reports
// unknown values.
func DrainLabel(pod *corev1.Pod) (v1alpha1.DrainBehavior, []Problem) {
	value, set := pod.Labels[v1alpha1.DrainLabel]
	if !set {
		return v1alpha1.DrainBehaviorDrain, nil
	}
	switch strings.ToLower(value) {
	case "skip":
		return v1alpha1.DrainBehaviorSkip, nil
	case "wait-completed", "waitcompleted":
		return v1alpha1.DrainBehaviorWaitCompleted, nil
	}
	return v1alpha1.DrainBehaviorDrain, []Problem{{
		Key:     v1alpha1.DrainLabel,
		Message: fmt.Sprintf(`label %s: %q is ignored, use "skip" or "wait-completed"`, v1alpha1.DrainLabel, value),
	}}
}

// OnUpgrade reports whether the pod asks to stay during reboots. It reports unknown values.
func OnUpgrade(pod *corev1.Pod) (stay bool, problems []Problem) {
	value, set := pod.Labels[v1alpha1.OnUpgradeLabel]
	switch {
	case !set:
		return false, nil
	case strings.EqualFold(value, v1alpha1.OnUpgradeStay):
		return true, nil
	}
	return false, []Problem{{
		Key:     v1alpha1.OnUpgradeLabel,
		Message: fmt.Sprintf(`label %s: %q is ignored, use %q`, v1alpha1.OnUpgradeLabel, value, v1alpha1.OnUpgradeStay),
	}}
}
