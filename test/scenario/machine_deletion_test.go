package scenario

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

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
