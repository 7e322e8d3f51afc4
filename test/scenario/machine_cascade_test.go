package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// The finalizer of the garbage collector would do the same, by the right to patch
// a Machine alone.
func TestAMachineIsNotMarkedForTheForeground(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.runningAs("m", stays())
	err := w.setFinalizers(w.machineOf(m), `["`+v1alpha1.MachineFinalizer+`","foregroundDeletion"]`)
	if !apierrors.IsForbidden(err) || !contains(err.Error(), "the finalizer foregroundDeletion has the garbage collector delete the infrastructure") {
		t.Fatalf("the answer to the finalizer is %v, want it refused", err)
	}
	w.must("delete "+m, w.remove(w.machineOf(m)))
	w.awaitEmptied(m)
	w.get(w.instance(), m)
	w.awaitEnd(m)
}

// Whoever deletes a namespace with Machines deletes everything in it at once: the
// controller of namespaces asks nobody in which order. The instance goes before
// its Node is drained, whatever holds the Machine; the Cluster is being deleted,
// too, so that the Node is neither drained nor deleted; what holds the Machine
// holds it and the namespace, and says so.
func TestLongANamespaceWithMachinesTakesTheirInstancesAtOnce(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	fleet := *w
	fleet.ns = w.cluster.Namespace(t)
	fleet.clusterOf(hosts)
	m := fleet.runningAs("m", preDrain(hook("Backup", "the backups")), stays())
	w.pods(m, pod{name: "protected", neverEvicted: true})

	w.must("delete the namespace", w.remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet.ns}}))

	fleet.awaitAbsent(&api.SandboxMachine{}, m)
	fleet.awaitStep(m, v1alpha1.ReasonWaitingForPreTerminateHook)
	fleet.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonSkipped,
		"The Node is not drained: Cluster "+fleet.ns+"/hosts is being deleted.",
		"Pre-drain hooks therefore have no effect: Backup (owner the backups)")
	w.awaitPod("protected", "neither evicted nor deleted", func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
	w.awaitNode(m, "left and out of touch", func(n *corev1.Node) bool {
		return nodeReady(n) != corev1.ConditionTrue && n.DeletionTimestamp == nil && !n.Spec.Unschedulable
	})
	fleet.edit(m, preTerminate())
	fleet.awaitAbsent(&v1alpha1.Machine{}, m)
	w.awaitAbsent(&corev1.Namespace{}, fleet.ns)
	w.awaitNode(m, "left", func(n *corev1.Node) bool { return n.DeletionTimestamp == nil })
}
