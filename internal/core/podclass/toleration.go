package podclass

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Toleration returns the first toleration of a taint, like ToleratesTaint, which needs a logger.
func Toleration(tolerations []corev1.Toleration, taint *corev1.Taint) *corev1.Toleration {
	for i := range tolerations {
		t := &tolerations[i]
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			continue
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			if t.Value == taint.Value {
				return t
			}
		case corev1.TolerationOpExists:
			return t
		case corev1.TolerationOpLt, corev1.TolerationOpGt:
			if compares(t, taint) {
				return t
			}
		}
	}
	return nil
}

// compares reports whether the value of a taint is on the side of the number that is tolerated.
func compares(t *corev1.Toleration, taint *corev1.Taint) bool {
	bound, err := strconv.ParseInt(t.Value, 10, 64)
	if err != nil {
		return false
	}
	value, err := strconv.ParseInt(taint.Value, 10, 64)
	if err != nil {
		return false
	}
	return t.Operator == corev1.TolerationOpLt && value < bound || t.Operator == corev1.TolerationOpGt && value > bound
}

// Tolerates reports whether a pod tolerates this key with effect NoSchedule and no value.
func Tolerates(pod *corev1.Pod, key string) bool {
	return Toleration(pod.Spec.Tolerations, &corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}) != nil
}
