package scenario

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// forgetAttempts is what time does when nobody calls the eviction API any more.
func (w *world) forgetAttempts(pod *corev1.Pod) {
	w.t.Helper()
	e := &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}
	w.change(e, evacuation.Name(pod), func() {
		e.Annotations[v1alpha1.EvictionAttemptAnnotation] = time.Now().Add(-time.Hour).Format(time.RFC3339)
	})
}

// When the attempts to evict stop, the pod stays where it is.
func TestARequestThatNobodyRepeatsIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	movable := w.movable(w.nodes("one")[0], "movable")
	w.awaitAnswer(movable, "evacuation in progress: "+mover)
	w.awaitTurn(movable, mover)

	w.forgetAttempts(movable)

	w.awaitNoEvacuations()
	w.awaitPod(movable.Name, "left alone", func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
}
