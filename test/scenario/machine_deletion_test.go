package scenario

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// triedAgain is the line about evictions that failed.
const triedAgain = "\n* Evictions that failed are tried again: as soon as their budget allows them or its lock ends, all others at least once a minute"

// The ten phases of machine-deletion-process happen one after the other.
func TestAMachineGoesPhaseByPhase(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.runningAs("m", preDrain(hook("Backup", "the backups")), stays())
	w.machineRule("db", ordered(1))
	w.pods(m, pod{name: "web"})
	volume := w.podWithDisk(m, pod{name: "db", labels: of("db")})
	chronicle := w.chronicle(m)

	w.deleteMachines(m)
	w.awaitStep(m, v1alpha1.ReasonWaitingForPreDrainHook)
	w.edit(m, preDrain())
	w.awaitStep(m, v1alpha1.ReasonWaitingForVolumeDetach)
	w.letGo(volume, volume.Name)
	w.awaitEmptied(m)
	w.edit(m, preTerminate())

	chronicle.await(
		"step "+v1alpha1.ReasonWaitingForPreDrainHook,
		"step "+v1alpha1.ReasonDrainingNode, "Node cordoned", "pod web gone", "pod db gone",
		"step "+v1alpha1.ReasonWaitingForVolumeDetach, "volume detached",
		"step "+v1alpha1.ReasonWaitingForPreTerminateHook,
		"step "+v1alpha1.ReasonWaitingForInfrastructureDeletion, "infrastructure gone",
		"step "+v1alpha1.ReasonWaitingForBootstrapDeletion, "bootstrap config gone",
		"step "+v1alpha1.ReasonDeletingNode, "Node gone",
		"step "+v1alpha1.ReasonDeletionCompleted, "Machine gone",
	)
}

// A budget holds the drain, which names the pods as the deletion-process page
// does. When the budget opens the drain goes on.
func TestABudgetHoldsTheDrain(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.running("m")[0]
	var web []pod
	for i := range 5 {
		web = append(web, pod{name: fmt.Sprintf("nginx-%d", i+1), labels: map[string]string{"name": "nginx"}})
	}
	w.pods(m, append(web, pod{name: "leaving", held: true})...)
	w.createBudget("nginx", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(5))})

	w.deleteMachines(m)

	w.awaitMessage(m, v1alpha1.ConditionDrainingSucceeded, `Drain not completed yet:
* Pods with deletionTimestamp that still exist: `+w.ns+`/leaving
* Pods with eviction failed:
  * Cannot evict pod as it would violate the pod's disruption budget. The disruption budget nginx needs 5 healthy pods and has 5 currently: `+
		fmt.Sprintf("%[1]s/nginx-1, %[1]s/nginx-2, %[1]s/nginx-3, ... (2 more)", w.ns)+triedAgain)
	w.awaitSays(m, v1alpha1.ConditionMachineDrained, "False", v1alpha1.ReasonDraining)
	w.awaitStep(m, v1alpha1.ReasonDrainingNode, "Draining Node "+m+" since ")
	w.assertUnschedulable(m, true)
	w.release("leaving")
	w.openBudget("nginx")

	w.awaitNothingLeft(m)
	w.awaitEvent("m", "DrainStarted")
	w.awaitEvent("m", "DrainCompleted")
}

func (w *world) openBudget(name string) {
	w.t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}
	w.change(b, name, func() { b.Spec.MinAvailable = new(intstr.FromInt32(0)) })
}

// closeBudget has a budget never allow anything.
func (w *world) closeBudget(name string) {
	w.t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}
	w.change(b, name, func() { b.Spec.MinAvailable = new(intstr.FromInt32(1)) })
}

// awaitMessage waits until a condition of a Machine says exactly this.
func (w *world) awaitMessage(name, condition, message string) {
	w.t.Helper()
	w.awaitMachine(name, fmt.Sprintf("%s says\n%s", condition, message), func(m *v1alpha1.Machine) bool {
		c := apimeta.FindStatusCondition(m.Status.Conditions, condition)
		return c != nil && c.Message == message
	})
}

// An application of one pod that is moved by surging serves all the time while the
// Machine under it goes: the drain waits for who moves it.
func TestTheEndOfAMachineTakesNoServiceDown(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	machines := w.running("old", "new")
	w.cordon(machines[1], true)
	web := app{name: "web", replicas: 1, ready: "1s"}
	w.serve(web)
	w.createBudget("web", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))})
	before := w.shape("web")
	endpoints := w.cluster.WatchEndpoints(t, w.key("web"))
	w.cordon(machines[1], false)

	w.deleteMachines(machines[0])

	w.awaitNothingLeft(machines[0])
	w.awaitNoEvacuations()
	endpoints.AssertAtLeast(t, 1)
	w.awaitShape("web", before)
	if node := w.thePod("web").Spec.NodeName; node != machines[1] {
		t.Errorf("the application runs on %s, want %s", node, machines[1])
	}
}

// Ten Machines are deleted at once. A budget holds one of them for good; the nine
// others go without it.
func TestOneBlockedMachineHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	var short []string
	for i := range 10 {
		short = append(short, fmt.Sprintf("m%d", i))
	}
	machines := w.running(short...)
	for i, m := range machines {
		w.pods(m, pod{name: fmt.Sprintf("web-%d", i), neverEvicted: i == 0})
	}

	w.deleteMachines(machines...)

	w.awaitNothingLeft(machines[1:]...)
	w.awaitStep(machines[0], v1alpha1.ReasonDrainingNode, "The disruption budget web-0 needs 1 healthy pods and has 1 currently")
	w.awaitPod("web-0", "still running", func(p *corev1.Pod) bool { return running(p) && p.Spec.NodeName == machines[0] })
}
