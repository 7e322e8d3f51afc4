package scenario

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

// While the manager is down nobody starts a maintenance, because nobody can say
// who may, and evictions go through as if there were no Ebbtide. The next manager is
// found at its new address, with the old certificate.
func TestLongMaintenanceIsRefusedWhileTheManagerIsDown(t *testing.T) {
	t.Parallel()
	w := newMortalWorld(t)
	node := w.nodes("one")[0]
	w.maintain("early", v1alpha1.StageIdle, []string{node})
	pod := w.movable(node, "movable")

	w.manager.Kill(t)
	late := &v1alpha1.NodeMaintenance{}
	w.get(late, w.name("early"))
	late.ObjectMeta = metav1.ObjectMeta{Name: w.name("late")}
	if err := w.client.Create(w.ctx, late.DeepCopy()); !sandbox.NotCalled(err) {
		t.Errorf("create a maintenance: %v, want that our webhook cannot be called", err)
	}
	if err := w.client.Delete(w.ctx, w.maintenance("early")); !sandbox.NotCalled(err) {
		t.Errorf("delete a maintenance: %v, want that our webhook cannot be called", err)
	}
	w.must("evict a pod past its evacuator", w.evict(pod))
	w.manager.Start(t)

	w.create(late)
	w.deleteMaintenance("late")
	w.awaitMaintenanceGone("late")
}
