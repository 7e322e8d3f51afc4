package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A cluster is cut off in the middle of a drain. Its Machine says so and nothing of
// it is skipped; one of another cluster ends meanwhile. When the cluster is back the
// drain goes on by itself.
func TestAClusterThatIsCutOffHoldsUpOnlyItsMachine(t *testing.T) {
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

	east.proxy.Cut()

	east.awaitLost("connect to " + east.proxy.URL() + ": ")
	east.awaitStuck(there, "connect to "+east.proxy.URL()+": ")
	w.awaitEvent(there, v1alpha1.ReasonDrainError)
	east.release("web")
	east.awaitGone("web")
	w.deleteMachines(here)
	w.awaitNothingLeft(here)
	east.awaitLost()
	east.awaitPod("storage", "still running", running)
	instance := w.instance()
	if w.get(instance, there); instance.DeletionTimestamp != nil {
		t.Error("the infrastructure is being deleted while nobody knows whether its node is drained")
	}

	east.proxy.Restore()

	east.awaitNothingOf(there)
	east.awaitGone("storage")
}

// A cluster never answers again. Limits bound the deletion of its Machines, and
// annotations let one go at once; both say what is left.
func TestMachinesOfALostClusterGo(t *testing.T) {
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
	east.pods(limited, pod{name: "web"})
	east.pods(patient, pod{name: "shop"})

	east.proxy.Hang()
	east.awaitLost("no answer in time")
	w.deleteMachines(limited, patient)

	unread := "Nodes could not be read: cluster " + w.ns + "/east is unreachable since "
	w.awaitSays(limited, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonTimedOut,
		"The drain of Node "+limited+" was given up after 2s (nodeDrainTimeoutSeconds).", unread)
	w.awaitEmptied(limited)
	w.awaitSays(limited, v1alpha1.ConditionVolumeDetachSucceeded, "False", v1alpha1.ReasonTimedOut,
		"Waiting for the volumes of Node "+limited+" was given up after 2s (nodeVolumeDetachTimeoutSeconds).", unread)
	w.edit(limited, preTerminate())
	w.awaitAbsent(&v1alpha1.Machine{}, limited)
	w.awaitEvent(limited, "NodeLeft")

	east.awaitStuck(patient)
	w.edit(patient, annotated(v1alpha1.ExcludeNodeDrainingAnnotation, ""))
	w.awaitSays(patient, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonSkipped,
		"Annotation "+v1alpha1.ExcludeNodeDrainingAnnotation+" is set.")
	w.awaitStep(patient, v1alpha1.ReasonWaitingForVolumeDetach, unread)
	w.edit(patient, annotated(v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation, ""))
	w.awaitAbsent(&v1alpha1.Machine{}, patient)

	for _, name := range []string{limited, patient} {
		w.awaitAbsent(w.instance(), name)
		east.awaitNode(name, "left there", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	}
	for _, name := range []string{"web", "shop"} {
		east.awaitPod(name, "left there", running)
	}
}

// The manager is killed while it drains a node of another cluster. The next one
// goes on where it was.
func TestManagerIsKilledWhileItDrainsAnotherCluster(t *testing.T) {
	w := newMachineWorld(t)
	east := w.remote("east")
	name := east.running("m", stays())
	east.rule("portworx", ordered(100))
	east.pods(name, pod{name: "web", held: true}, pod{name: "storage", labels: of("portworx")})
	w.deleteMachines(name)
	east.awaitPod("web", "terminating", terminating)

	w.manager.Kill(t)
	started := w.machineNow(name).Status.Deletion.NodeDrainStartTime
	east.awaitPod("storage", "still running", running)
	east.release("web")
	w.manager.Start(t)

	w.awaitEmptied(name)
	east.awaitGone("storage")
	if again := w.machineNow(name).Status.Deletion.NodeDrainStartTime; !started.Equal(again) {
		t.Errorf("the drain began at %v, and is said to have begun at %v", started, again)
	}
	w.edit(name, preTerminate())
	east.awaitNothingOf(name)
}
