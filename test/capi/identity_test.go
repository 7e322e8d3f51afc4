package capi

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
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

// A node is deleted and registers again in the middle of its drain, while no manager runs:
// it is drained under a maintenance of its own.
func TestLongANodeThatRegistersAgain(t *testing.T) {
	w, replica := bareWorld(t)
	node := w.bareNode(w.ns+"-again", "sandbox:///again", w.ns, "again")
	w.stuckPod(node.Name)
	machine := newMachine(w.ns, "again", "sandbox:///again")
	w.create(machine)
	w.waitsAtHooks(w.c.Client, machine, node.Name)
	w.awaitEvent(machine, v1alpha1.EventBridgeDraining, node.Name+" is drained for Machine")
	name := core.MaintenanceName(core.ClusterAPI, w.ns, "again")
	before := w.maintenance(name).UID

	replica.Kill()
	w.delete(node)
	w.bareNode(node.Name, "sandbox:///again", w.ns, "again")
	w.c.StartReplica(t)

	w.await("another maintenance", func() (string, bool) {
		uid := w.maintenance(name).UID
		return string(uid), uid != before && uid != ""
	})
	if events := w.events(machine); !hooked(w.now(machine)) || slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, v1alpha1.EventBridgeDone) }) {
		t.Errorf("the hook is gone, or the drain over, under a pod that stays: %v", events)
	}
	w.letGoOf(machine)
	w.must(w.c.Client.Delete(w.ctx, node))
	w.awaitNoMaintenance("again")
}

// maintenance reads a NodeMaintenance; none is empty.
func (w *world) maintenance(name string) *v1alpha1.NodeMaintenance {
	w.t.Helper()
	m := &v1alpha1.NodeMaintenance{}
	_ = w.c.Client.Get(w.ctx, types.NamespacedName{Name: name}, m)
	return m
}
