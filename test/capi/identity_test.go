package capi

import (
	"fmt"
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

func (w *world) awaitUncordoned(node string) {
	w.t.Helper()
	w.await("node "+node+" to be schedulable", func() (string, bool) { return fmt.Sprint(w.maintenances()), !w.isCordoned(node) })
}

// A Machine is made anew under the name of one that was drained and whose node stays, as when
// a host is adopted again: the node is no longer cordoned for the old one.
func TestLongAMachineMadeAnewIsNotDrainedForTheOldOne(t *testing.T) {
	w, _ := bareWorld(t)
	node := w.bareNode(w.ns+"-worker", "sandbox:///worker", w.ns, "worker")
	machine := newMachine(w.ns, "worker", "sandbox:///worker")
	w.create(machine)
	w.waitsAtHooks(w.c.Client, machine, node.Name)
	w.awaitEvent(machine, v1alpha1.EventBridgeDone, node.Name+" is drained; the hook is removed")
	w.letGoOf(machine)

	again := newMachine(w.ns, "worker", "sandbox:///worker")
	w.create(again)
	w.awaitNoMaintenance("worker")
	w.awaitUncordoned(node.Name)

	// And is drained for the new one when that is deleted.
	w.waitsAtHooks(w.c.Client, again, node.Name)
	w.awaitEvent(again, v1alpha1.EventBridgeDone, node.Name+" is drained; the hook is removed")
	w.letGoOf(again)
	w.delete(node)
	w.awaitNoMaintenance("worker")
}

// The node of a Machine is another one in the middle of its drain, and the old Node stays:
// the new node is drained, and the old one released.
func TestLongTheNodeOfAMachineIsAnotherOne(t *testing.T) {
	w, _ := bareWorld(t)
	first := w.bareNode(w.ns+"-first", "sandbox:///moves", w.ns, "moves")
	second := w.bareNode(w.ns+"-second", "sandbox:///moves", w.ns, "moves")
	w.stuckPod(first.Name)
	machine := newMachine(w.ns, "moves", "sandbox:///moves")
	w.create(machine)
	w.waitsAtHooks(w.c.Client, machine, first.Name)
	w.awaitEvent(machine, v1alpha1.EventBridgeDraining, first.Name+" is drained for Machine")

	w.must(w.c.Client.Status().Patch(w.ctx, machine, mergePatch(fmt.Sprintf(`{"status":{"nodeRef":{"name":%q}}}`, second.Name))))
	w.awaitEvent(machine, v1alpha1.EventBridgeDone, second.Name+" is drained; the hook is removed")
	w.awaitUncordoned(first.Name)
	w.letGoOf(machine)
	w.delete(second)
	w.awaitNoMaintenance("moves")
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
