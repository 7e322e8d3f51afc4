package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

const (
	mover  = "mover.example.com"
	backup = "backup.example.com"
)

// movable creates a pod that two evacuators have registered on.
func (w *world) movable(node, name string) *corev1.Pod {
	w.t.Helper()
	p := w.podOn(node, pod{name: name})
	p.Annotations[v1alpha1.EvacuatorAnnotationPrefix+mover] = "20"
	p.Annotations[v1alpha1.EvacuatorAnnotationPrefix+backup] = "10"
	w.createPod(p)
	w.awaitPod(name, "running", func(found *corev1.Pod) bool {
		*p = *found
		return found.Status.Phase == corev1.PodRunning
	})
	return p
}

// awaitTurn waits until it is this evacuator's turn.
func (w *world) awaitTurn(pod *corev1.Pod, class string) {
	w.t.Helper()
	await(w, "active evacuator "+class, &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}, evacuation.Name(pod),
		func(e *v1alpha1.Evacuation) bool {
			return e.Status.ActiveEvacuatorClass == class && !e.Status.ActiveEvacuatorCompleted &&
				e.Status.EvacuationProgressTimestamp != nil
		})
}

// evacuator writes to the status of an evacuation, as the active evacuator does.
func (w *world) evacuator(pod *corev1.Pod, patch string) {
	w.t.Helper()
	e := &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: evacuation.Name(pod)}}
	w.must("patch the evacuation", w.client.Status().Patch(w.ctx, e, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

const completes = `{"status":{"activeEvacuatorCompleted":true}}`

// evacuatorsComplete is the end of the turn of mover, and the turn of backup.
func (w *world) evacuatorsComplete(pod *corev1.Pod) {
	w.t.Helper()
	w.evacuator(pod, completes)
	w.awaitTurn(pod, backup)
	w.evacuator(pod, completes)
}

// Evacuators have their turns by priority; when the last one has completed and
// the pod is still there, it is evicted.
func TestEvacuatorsTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	movable := w.movable(node, "movable")

	w.maintain("upgrade", v1alpha1.StageDrain, []string{node})

	w.awaitTurn(movable, mover)
	w.awaitBlocker("upgrade", node, v1alpha1.BlockerEvacuatorRunning, "Evacuator "+mover+" moves the pod")
	w.evacuatorsComplete(movable)
	w.awaitDrained("upgrade")
	w.awaitNoEvacuations()
}
