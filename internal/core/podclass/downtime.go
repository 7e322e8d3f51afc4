package podclass

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Forever is the duration of a toleration without an end.
const Forever = time.Duration(math.MaxInt64)

// Endurance returns how long a pod stays on a node that is down before the taint manager deletes it,
// and the taint that it tolerates the shortest, of node.kubernetes.io/unreachable and
// node.kubernetes.io/not-ready with effect NoExecute. It is 0 if one is not tolerated, and Forever
// if both are without an end.
func Endurance(pod *corev1.Pod) (least time.Duration, taint string) {
	unreachable := executeAfter(pod, corev1.TaintNodeUnreachable)
	if notReady := executeAfter(pod, corev1.TaintNodeNotReady); notReady < unreachable {
		return notReady, corev1.TaintNodeNotReady
	}
	return unreachable, corev1.TaintNodeUnreachable
}

// executeAfter returns when the taint manager deletes a pod for a taint. The first match counts.
func executeAfter(pod *corev1.Pod, key string) time.Duration {
	t := Toleration(pod.Spec.Tolerations, &corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	if t == nil {
		return 0
	}
	return lasts(t)
}

func lasts(t *corev1.Toleration) time.Duration {
	switch seconds := t.TolerationSeconds; {
	case seconds == nil || *seconds > int64(Forever/time.Second):
		return Forever
	default:
		return time.Duration(max(0, *seconds)) * time.Second
	}
}
