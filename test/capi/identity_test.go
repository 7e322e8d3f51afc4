package capi

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// stuckPod is a pod on a node that its budget does not let go.
func (w *world) stuckPod(node string) {
	w.t.Helper()
	w.never(node)
	w.runningPod(node, node, map[string]string{"app": node})
}

// runningPod is a pod on a node. Budgets do not hold pods that do not run.
func (w *world) runningPod(name, node string, labels map[string]string) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "web", Image: "web"}},
		},
	}
	w.create(pod)
	w.must(w.c.Client.Status().Patch(w.ctx, pod, mergePatch(`{"status":{"phase":"Running"}}`)))
}
