package podclass

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// DrainLabel returns what the drain label of a pod asks for, Drain if it has
// none. Values are compared without case; another value is left out and
// reported.
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
