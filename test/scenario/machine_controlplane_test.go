package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

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
		"Waiting for Machines to be deleted: "+m+". Delete these: "+m+"."))

	w.deleteMachines(m)

	w.awaitEmptied(m)
	going := "Cluster " + w.ns + "/hosts is being deleted."
	w.awaitSays(m, v1alpha1.ConditionVolumeDetachSucceeded, "False", v1alpha1.ReasonSkipped, "Not waiting for volumes: "+going)
	w.awaitEvent(m, "DrainSkipped")
	w.assertUnschedulable(m, false)
	w.awaitPod("protected", "still running", running)
	w.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonSkipped, "The Node is not drained: "+going,
		"Pre-drain hooks therefore have no effect: Backup (owner the backups)")
	await(w, "held by its Machine still", c, hosts, clusterSays("To see their progress: kubectl get machines.ebbtide.dev"))
	w.edit(m, preTerminate())
	w.awaitAbsent(&v1alpha1.Machine{}, m)
	w.awaitAbsent(&api.SandboxMachine{}, m)
	w.awaitEvent(m, "NodeLeft")
	w.awaitNode(m, "left", func(n *corev1.Node) bool { return n.DeletionTimestamp == nil })
	w.awaitAbsent(c, hosts)
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
