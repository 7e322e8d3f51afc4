package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

// Special cases of machine-deletion-process: an unreachable Node cannot say that
// its pods have stopped, so pods that terminate are not waited for, and pods get
// one second. Budgets hold all the same, and volumes are not waited for.
func TestAnUnreachableNodeIsDrainedWithoutItsKubelet(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.runningAs("m", stays())
	w.podWithDisk(m, pod{name: "db"})
	w.createBudget("db", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))})
	slow := w.podOn(m, pod{name: "slow", held: true})
	slow.Spec.TerminationGracePeriodSeconds = new(int64(3600))
	w.createPod(slow)
	w.awaitPod("slow", "running", running)
	w.must("stop the node", sandbox.StopNode(w.ctx, w.client, m))

	graces := w.watchGraces("slow")

	w.deleteMachines(m)

	w.awaitMessage(m, v1alpha1.ConditionDrainingSucceeded, `Drain not completed yet:
* Pods with eviction failed:
  * Cannot evict pod as it would violate the pod's disruption budget. The disruption budget db needs 1 healthy pods and has 1 currently: `+w.ns+`/db`+triedAgain)
	w.openBudget("db")

	w.awaitEmptied(m)
	w.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "True", v1alpha1.ReasonDrained)
	w.awaitSays(m, v1alpha1.ConditionVolumeDetachSucceeded, "False", v1alpha1.ReasonSkipped,
		"Not waiting for volumes: Node "+m+" is unreachable.")
	w.awaitPod("slow", "still there", terminating)
	if got := graces(); len(got) == 0 || got[0] != 1 {
		t.Errorf("the pod got %v seconds to terminate, want 1", got)
	}
	w.awaitEnd(m)
}

// watchGraces notes how long a pod gets to terminate, until its result is called.
func (w *world) watchGraces(name string) func() []int64 {
	w.t.Helper()
	var graces []int64
	stop := w.watchPods(func(_ watch.EventType, p *corev1.Pod) {
		if p.Name == name && p.DeletionGracePeriodSeconds != nil {
			graces = append(graces, *p.DeletionGracePeriodSeconds)
		}
	})
	return func() []int64 { stop(); return graces }
}

// The Cluster of a Machine is gone, so nobody knows how to reach its Node. The
// deletion stops and says what helps: the Cluster, or annotations.
func TestAMachineOfAMissingClusterStopsBeforeItsNode(t *testing.T) {
	t.Parallel()
	tests := map[string]func(w *world, m string){
		"until the Cluster is there": func(w *world, m string) {
			w.clusterOf(hosts)
			w.awaitNothingLeft(m)
		},
		"until annotations say that it is gone for good": func(w *world, m string) {
			w.edit(m, annotated(v1alpha1.ExcludeNodeDrainingAnnotation, ""))
			w.edit(m, annotated(v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation, ""))
			w.awaitAbsent(&v1alpha1.Machine{}, m)
			w.awaitEvent("m", "NodeLeft")
			w.awaitNode(m, "left", func(n *corev1.Node) bool { return n.DeletionTimestamp == nil })
		},
	}
	for name, help := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMachineWorld(t)
			m := w.runningAs("m", func(m *v1alpha1.Machine) { m.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(1)) })
			w.erase(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: hosts}})

			w.deleteMachines(m)

			w.awaitStep(m, v1alpha1.ReasonDrainingNode,
				"Cannot determine the Node because Cluster "+w.ns+"/hosts does not exist. Create the Cluster. If the cluster is lost, set annotations "+
					"machine.cluster.x-k8s.io/exclude-node-draining and machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach to delete the Machine.")
			w.assertUntouched(m)
			help(w, m)
		})
	}
}

// Somebody else deletes the instance in the middle of a drain that a budget holds.
// As long as its kubelet answers the drain goes on; when it does not, nobody
// there could end a pod any more, and the Machine goes.
func TestAnInstanceThatGoesByItselfIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.runningAs("m", stays())
	w.podWithDisk(m, pod{name: "db"})
	w.createBudget("db", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))})
	w.deleteMachines(m)
	w.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonDraining, "The disruption budget db needs 1 healthy pods")
	w.keep(w.instance(), m)

	instance := w.instance()
	w.get(instance, m)
	w.must("delete the instance", w.client.Delete(w.ctx, instance))

	w.awaitEmptied(m)
	const isGoing = " is being deleted, and Node "
	w.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonSkipped,
		"The Node is not drained: SandboxMachine "+w.ns+"/"+m+isGoing+m+" is unreachable.")
	w.awaitSays(m, v1alpha1.ConditionMachineDrained, "True", v1alpha1.ReasonSkipped)
	w.awaitSays(m, v1alpha1.ConditionVolumeDetachSucceeded, "False", v1alpha1.ReasonSkipped, "is being deleted")
	w.letGo(w.instance(), m)
	w.awaitEnd(m)
}
