package scenario

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	migrates = "MigrateImportantApp (owner my-app-migration-controller)"

	ownCondition = "PreDrainMigrateImportantAppSucceeded"
)

func preDrain(hooks ...v1alpha1.LifecycleHook) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) { m.Spec.LifecycleHooks.PreDrain = hooks }
}

func preTerminate(hooks ...v1alpha1.LifecycleHook) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) { m.Spec.LifecycleHooks.PreTerminate = hooks }
}

// stays is for a Machine that stays when it is drained, so that one can look at it.
func stays() func(*v1alpha1.Machine) { return preTerminate(hook("LookAround", "the scenario")) }

// awaitEmptied waits for a Machine of stays to be drained.
func (w *world) awaitEmptied(name string) {
	w.t.Helper()
	w.awaitStep(name, v1alpha1.ReasonWaitingForPreTerminateHook, "LookAround (owner the scenario)")
}

// awaitEnd lets a Machine of stays go and waits for its end.
func (w *world) awaitEnd(name string) {
	w.t.Helper()
	w.edit(name, preTerminate())
	w.awaitNothingLeft(name)
}

// report is what the implementer of a hook says about it on the Machine.
func (w *world) report(name string, status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	condition := metav1.Condition{Type: ownCondition, Status: status, Reason: reason, Message: message}
	w.eventually("report on "+name, func() (bool, any) {
		m := w.machineNow(name)
		apimeta.SetStatusCondition(&m.Status.Conditions, condition)
		err := w.client.Status().Update(w.ctx, m)
		if apierrors.IsConflict(err) {
			return false, err.Error()
		}
		w.must("report on "+name, err)
		return true, nil
	})
}

// Story 3 of machine-deletion-hooks: a drainer of one's own moves what matters
// most before everything else is drained. What it says of itself on the Machine
// stays, whatever the controller writes.
func TestACustomDrainerGoesFirst(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.runningAs("m", stays(), preDrain(hook("MigrateImportantApp", "my-app-migration-controller")))
	w.pods(m, pod{name: "important"}, pod{name: "web"})
	w.deleteMachines(m)

	w.awaitStep(m, v1alpha1.ReasonWaitingForPreDrainHook, "Waiting for pre-drain hooks since ", ": "+migrates)
	w.awaitSays(m, v1alpha1.ConditionDrainable, "False", v1alpha1.ReasonHookPresent, "Waiting for pre-drain hooks: "+migrates)
	w.assertUnschedulable(m, false)
	w.report(m, metav1.ConditionFalse, "NoCapacity", "there is no room for important")
	w.must("move important", w.client.Delete(w.ctx, w.podOn(m, pod{name: "important"})))
	w.awaitGone("important")
	w.awaitPod("web", "still running", running)
	if drained := apimeta.FindStatusCondition(w.machineNow(m).Status.Conditions, v1alpha1.ConditionMachineDrained); drained != nil {
		t.Errorf("the Machine says %+v before the first attempt to drain it", drained)
	}

	w.edit(m, preDrain())
	w.awaitEmptied(m)

	w.awaitGone("web")
	w.awaitSays(m, v1alpha1.ConditionDrainable, "True", v1alpha1.ReasonNoHooks)
	w.awaitSays(m, v1alpha1.ConditionMachineDrained, "True", v1alpha1.ReasonDrained)
	w.awaitSays(m, ownCondition, "False", "NoCapacity", "there is no room for important")
	w.awaitEnd(m)
}
