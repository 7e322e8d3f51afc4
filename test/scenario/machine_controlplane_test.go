package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

var member = labelled(v1alpha1.ControlPlaneLabel, "")

// awaitUndrained waits until a Machine of stays goes without its Node being
// touched, and sees that it says why.
func (w *world) awaitUndrained(name, pod, why string) {
	w.t.Helper()
	w.awaitEmptied(name)
	w.awaitSays(name, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonSkipped, "The Node is not drained: "+why)
	w.awaitSays(name, v1alpha1.ConditionVolumeDetachSucceeded, "False", v1alpha1.ReasonSkipped, "Volumes are not waited for: "+why)
	w.awaitEvent(name, "DrainSkipped")
	w.assertUnschedulable(name, false)
	w.awaitPod(pod, "still running", running)
}

// awaitNodeLeft lets a Machine of stays go and sees that its Node is left.
func (w *world) awaitNodeLeft(name string) {
	w.t.Helper()
	w.edit(name, preTerminate())
	w.awaitAbsent(&v1alpha1.Machine{}, name)
	w.awaitAbsent(&api.SandboxMachine{}, name)
	w.awaitEvent(name, "NodeLeft")
	w.awaitNode(name, "left", func(n *corev1.Node) bool { return n.DeletionTimestamp == nil })
}

// A Cluster that is deleted takes its Nodes with it: they are neither drained nor
// deleted. Pre-drain hooks hold nothing then, pre-terminate hooks do. The Cluster
// goes last, and says who holds it.
func TestNodesOfAClusterThatIsDeletedAreNotTouched(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.runningAs("m", stays(), preDrain(hook("Backup", "the backups")))
	w.pods(m, pod{name: "protected", neverEvicted: true})
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: hosts}}
	w.must("delete the Cluster", w.remove(c))
	await(w, "held by its Machine", c, hosts, clusterSays(
		"The Cluster goes when its Machines are gone: "+m+". Delete those that nobody has deleted yet: "+m+"."))

	w.deleteMachines(m)

	w.awaitUndrained(m, "protected", "Cluster "+w.ns+"/hosts is being deleted.")
	w.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonSkipped,
		"Pre-drain hooks therefore hold nothing: Backup (owner the backups)")
	await(w, "held by its Machine still", c, hosts, clusterSays("All of them are being deleted; their condition Deleting says what each waits for."))
	w.awaitNodeLeft(m)
	w.awaitAbsent(c, hosts)
}

// The last Machine of a control plane cannot be drained: there would be nobody to
// run its pods elsewhere. Nor can workers that outlive it.
func TestNodesWithoutAControlPlaneAreNotTouched(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	last, worker := w.machine("last", stays(), member), w.machine("worker", stays())
	w.awaitRunning(last, worker)
	w.pods(last, pod{name: "scheduler"})
	w.pods(worker, pod{name: "web"})
	why := "No other control-plane Machine of Cluster " + w.ns + "/hosts is left."

	w.deleteMachines(last)
	w.awaitUndrained(last, "scheduler", why)
	w.awaitNodeLeft(last)
	w.deleteMachines(worker)
	w.awaitUndrained(worker, "web", why)
	w.awaitNodeLeft(worker)
}

// A KubeadmControlPlane takes a Node out of the control plane while its
// pre-terminate hook holds the Machine. When it has removed the hook the Node may
// have no API server to talk to: it is neither drained any more nor waited for.
func TestANodeThatHasLeftItsControlPlaneIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	old := w.machine("old", member, stays(), annotated(v1alpha1.ControlPlaneHookAnnotation, ""), func(m *v1alpha1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane", Name: "plane", UID: "1", Controller: new(true),
		}}
	})
	w.awaitRunning(old, w.machine("other", member))
	w.pods(old, pod{name: "protected", neverEvicted: true})
	w.deleteMachines(old)
	w.awaitSays(old, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonDraining, "The disruption budget protected needs 1")

	w.edit(old, without(v1alpha1.ControlPlaneHookAnnotation))

	w.awaitEmptied(old)
	gone := "The KubeadmControlPlane has taken it out of the control plane: its pre-terminate hook is gone."
	w.awaitSays(old, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonSkipped, "The Node is not drained: "+gone)
	w.awaitSays(old, v1alpha1.ConditionVolumeDetachSucceeded, "False", v1alpha1.ReasonSkipped, "its pre-terminate hook is gone.")
	w.awaitPod("protected", "still running", running)
	w.awaitEnd(old)
}

func clusterSays(words string) func(*v1alpha1.Cluster) bool {
	return func(c *v1alpha1.Cluster) bool {
		for _, condition := range c.Status.Conditions {
			if condition.Type == v1alpha1.ConditionDeleting {
				return condition.Reason == v1alpha1.ReasonMachinesLeft && contains(condition.Message, words)
			}
		}
		return false
	}
}
