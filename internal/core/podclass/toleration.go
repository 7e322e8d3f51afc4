package podclass

import corev1 "k8s.io/api/core/v1"

// Tolerates returns true if a pod tolerates a taint of this key without a value
// and with the effect NoSchedule.
func Tolerates(pod *corev1.Pod, key string) bool {
	for _, t := range pod.Spec.Tolerations {
		everything := t.Key == "" && t.Operator == corev1.TolerationOpExists
		this := t.Key == key && (t.Operator == corev1.TolerationOpExists || t.Value == "")
		effect := t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule
		if effect && (everything || this) {
			return true
		}
	}
	return false
}
