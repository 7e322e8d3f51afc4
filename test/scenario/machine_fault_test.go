package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// stop is a step in which a Machine is stopped.
type stop struct {
	machine, step string
	// free lets the Machine go on without the manager, answer with it.
	free, answer func()
}

// inEveryStep deletes a Machine for each step of a deletion, and waits until each
// is stopped in its own.
func (w *world) inEveryStep() []stop {
	w.t.Helper()
	drains := w.machine("drains")
	detaches, instance := w.machine("detaches"), w.machine("instance")
	config, node := w.machine("config"), w.machine("node", func(m *v1alpha1.Machine) {
		m.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(0))
	})
	hooked, emptied := w.machine("hooked", preDrain(hook("Backup", "the backups"))), w.machine("emptied", stays())
	machines := []string{hooked, drains, detaches, emptied, instance, config, node}
	w.awaitRunning(machines...)
	w.pods(drains, pod{name: "protected", neverEvicted: true})
	w.pods(hooked, pod{name: "web"})
	volume := w.podWithDisk(detaches, pod{name: "db"})
	w.keep(w.instance(), instance)
	w.keep(w.config(), config)
	w.keep(&corev1.Node{}, node)
	w.deleteMachines(machines...)

	stops := []stop{
		{machine: hooked, step: v1alpha1.ReasonWaitingForPreDrainHook, answer: func() { w.edit(hooked, preDrain()) }},
		{machine: drains, step: v1alpha1.ReasonDrainingNode, free: func() { w.openBudget("protected") }},
		{machine: detaches, step: v1alpha1.ReasonWaitingForVolumeDetach, free: func() { w.letGo(volume, volume.Name) }},
		{machine: emptied, step: v1alpha1.ReasonWaitingForPreTerminateHook, answer: func() { w.edit(emptied, preTerminate()) }},
		{machine: instance, step: v1alpha1.ReasonWaitingForInfrastructureDeletion, free: func() { w.letGo(w.instance(), instance) }},
		{machine: config, step: v1alpha1.ReasonWaitingForBootstrapDeletion, free: func() { w.letGo(w.config(), config) }},
		{machine: node, step: v1alpha1.ReasonDeletingNode, free: func() { w.letGo(&corev1.Node{}, node) }},
	}
	for _, s := range stops {
		w.awaitStep(s.machine, s.step)
	}
	return stops
}

// The manager is killed while Machines are in every step of their deletion, and
// some of these end while it is dead. Another one goes on where each was; when
// the steps began is what it was.
func TestLongManagerIsKilledInEveryStepOfADeletion(t *testing.T) {
	t.Parallel()
	w := newMachineWorldIn(t, mortal)
	stops := w.inEveryStep()
	before := map[string]*v1alpha1.MachineDeletionStatus{}
	for _, s := range stops {
		before[s.machine] = w.machineNow(s.machine).Status.Deletion
	}

	w.manager.Kill(t)
	for _, s := range stops {
		if s.free != nil {
			s.free()
		}
	}
	w.manager.Start(t)

	for _, s := range stops {
		if s.answer == nil {
			w.awaitNothingLeft(s.machine)
			continue
		}
		w.awaitStep(s.machine, s.step)
		if diff := cmp.Diff(before[s.machine], w.machineNow(s.machine).Status.Deletion); diff != "" {
			t.Errorf("the beginning of steps of %s has changed (-before +after):\n%s", s.machine, diff)
		}
		s.answer()
		w.awaitNothingLeft(s.machine)
	}
	w.awaitGone("web")
	w.awaitGone("protected")
}
