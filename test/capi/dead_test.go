package capi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

// endless runs a pod on a node that does not stop when it is asked to.
func (w *world) endless(name, node string, graceSeconds int64) {
	w.t.Helper()
	w.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.app, Name: name, Annotations: map[string]string{sandbox.TerminateAfter: "2h"}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &graceSeconds, Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	})
}

// A node that has died ends no pods. Cluster API alone evicts them with a short grace period
// and goes on; so it does behind the bridge, and not later, whether the node dies before the
// drain or in the middle of it.
func TestLongAMachineOfADeadNodeGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bridged)
	before, rest := w.pairOf(3)
	during := rest[0]
	for _, m := range before.both() {
		w.endless("patient-"+m.GetName(), nodeOf(m), 3600)
		w.must(sandbox.StopNode(w.ctx, w.at.Client, nodeOf(m)))
	}
	w.endless("stubborn", nodeOf(during), 2)

	w.race(before, func(m *unstructured.Unstructured) { w.delete(m) })
	w.awaitEvent(before.behind, v1alpha1.EventBridgeDone, nodeOf(before.behind)+" is drained; the hook is removed")
	w.awaitGone(before.behind)

	w.delete(during)
	w.awaitEvent(during, v1alpha1.EventBridgeDraining, "1 pod left")
	w.must(sandbox.StopNode(w.ctx, w.at.Client, nodeOf(during)))
	w.awaitEvent(during, v1alpha1.EventBridgeDone, nodeOf(during)+" is drained; the hook is removed")
	w.awaitGone(during)
}
