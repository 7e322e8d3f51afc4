package podclass

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Behaviour is how a drain treats a pod (machine-drain-rules).
type Behaviour string

const (
	// Drain evacuates the pod and waits until it is gone; the default.
	Drain Behaviour = "Drain"
	// Skip retains the pod: it is neither evacuated nor waited for.
	Skip Behaviour = "Skip"
	// WaitCompleted waits until the pod has finished by itself.
	WaitCompleted Behaviour = "WaitCompleted"
)

// DrainLabel returns what the drain label of a pod asks for, Drain if it has
// none. Values are compared without case; another value is left out and
// reported.
func DrainLabel(pod *corev1.Pod) (Behaviour, []Problem) {
	value, set := pod.Labels[v1alpha1.DrainLabel]
	if !set {
		return Drain, nil
	}
	switch strings.ToLower(value) {
	case "skip":
		return Skip, nil
	case "wait-completed", "waitcompleted":
		return WaitCompleted, nil
	}
	return Drain, []Problem{{
		Key:     v1alpha1.DrainLabel,
		Message: fmt.Sprintf(`label %s: %q is ignored, use "skip" or "wait-completed"`, v1alpha1.DrainLabel, value),
	}}
}
