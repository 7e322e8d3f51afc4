package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A cluster answers no more in the middle of a drain. Its Machine says so and nothing
// of it is skipped; one of another cluster ends meanwhile. When the cluster is back
// the drain goes on by itself.
func TestLongAClusterThatHangsHoldsUpOnlyItsMachine(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	east := w.remote("east")
	there, here := east.running("m"), w.running("m")[0]
	east.rule("portworx", ordered(100))
	east.pods(there, pod{name: "web", held: true}, pod{name: "storage", labels: of("portworx")})
	w.pods(here, pod{name: "web"})
	w.deleteMachines(there)
	east.awaitPod("web", "terminating", terminating)
	east.awaitBack()

	east.proxy.Hang()

	w.deleteMachines(here)
	w.awaitNothingLeft(here)
	east.release("web")
	east.awaitGone("web")
	hangs := "connect to " + east.proxy.URL() + ": no answer in time"
	east.awaitLost(hangs)
	east.awaitStuck(there, hangs)
	w.awaitEvent(there, v1alpha1.ReasonDrainError)
	east.awaitPod("storage", "still running", running)
	instance := w.instance()
	if w.get(instance, there); instance.DeletionTimestamp != nil {
		t.Error("the infrastructure is being deleted while nobody knows whether its node is drained")
	}

	east.proxy.Restore()

	east.awaitNothingOf(there)
	east.awaitGone("storage")
}

// A cluster is lost for good. Limits bound the deletion of its Machines, annotations
// let one go, and so does the deletion of the Cluster. All say what is left.
func TestLongMachinesOfALostClusterGo(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	east := w.remote("east")
	limited := east.running("limited", stays(), func(m *v1alpha1.Machine) {
		m.Spec.Deletion = v1alpha1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds: new(int32(2)), NodeVolumeDetachTimeoutSeconds: new(int32(2)), NodeDeletionTimeoutSeconds: new(int32(2)),
		}
	})
	patient := east.running("patient", func(m *v1alpha1.Machine) {
		m.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(2))
	})
	last := east.running("last")
	apps := map[string]string{limited: "web", patient: "shop", last: "bank"}
	for node, app := range apps {
		east.pods(node, pod{name: app})
		w.keep(w.machineOf(node), node)
	}

	east.proxy.Cut()
	east.awaitLost("connect to " + east.proxy.URL() + ": ")
	w.deleteMachines(limited, patient)

	unread := "Nodes could not be read: cluster " + w.ns + "/east is unreachable since "
	w.awaitSays(limited, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonTimedOut,
		"Gave up draining Node "+limited+" after 2s (nodeDrainTimeoutSeconds).", unread)
	w.awaitEmptied(limited)
	w.awaitSays(limited, v1alpha1.ConditionVolumeDetachSucceeded, "False", v1alpha1.ReasonTimedOut,
		"Gave up waiting for the volumes of Node "+limited+" after 2s (nodeVolumeDetachTimeoutSeconds).", unread)
	w.edit(limited, preTerminate())

	east.awaitStuck(patient)
	w.edit(patient, annotated(v1alpha1.ExcludeNodeDrainingAnnotation, ""))
	w.awaitSays(patient, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonSkipped,
		"Annotation "+v1alpha1.ExcludeNodeDrainingAnnotation+" is set.")
	w.awaitStep(patient, v1alpha1.ReasonWaitingForVolumeDetach, unread)
	w.edit(patient, annotated(v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation, ""))

	// The last try may end in a connection that breaks, or find the cluster unreachable already.
	leaves := func(name string) {
		t.Helper()
		w.awaitStep(name, v1alpha1.ReasonDeletionCompleted, "Left behind: Gave up deleting Node "+name+
			" after 2s (nodeDeletionTimeoutSeconds): Nodes could not be read: ")
		w.awaitEvent(name, "NodeLeft")
	}
	leaves(limited)
	leaves(patient)

	w.must("delete the Cluster", w.remove(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "east"}}))
	w.deleteMachines(last)
	w.awaitSays(last, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonSkipped,
		"Cluster "+w.ns+"/east is being deleted.")

	for name, app := range apps {
		w.awaitAbsent(w.instance(), name)
		w.letGo(w.machineOf(name), name)
		w.awaitAbsent(w.machineOf(name), name)
		east.awaitNode(name, "left there", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
		east.awaitPod(app, "left there", running)
	}
	w.awaitAbsent(&v1alpha1.Cluster{}, "east")
}
