package scenario

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func waitsForCompletion() v1alpha1.MachineDrainRuleDrain {
	return v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorWaitCompleted}
}

// machineRule creates a MachineDrainRule for the pods of an application on the
// Machines of this world. It goes with the namespace.
func (w *world) machineRule(app string, drain v1alpha1.MachineDrainRuleDrain, machines ...v1alpha1.MachineDrainRuleMachineSelector) {
	w.t.Helper()
	w.create(&v1alpha1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: app},
		Spec: v1alpha1.MachineDrainRuleSpec{
			Drain: drain, Machines: machines,
			Pods: []v1alpha1.MachineDrainRulePodSelector{{Selector: labelSelector("app", app)}},
		},
	})
}

func (w *world) changeRule(name string, drain v1alpha1.MachineDrainRuleDrain) {
	w.t.Helper()
	rule := &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}
	w.change(rule, name, func() { rule.Spec.Drain = drain })
}

// Story 5 of machine-drain-rules: rules change while Machines are drained by
// them, and no Machine has to be touched for it.
func TestRulesChangeWhileMachinesAreDrained(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	machines := w.running("one", "two")
	w.machineRule("batch", waitsForCompletion())
	w.machineRule("web", ordered(1))
	for i, name := range []string{"1", "2"} {
		w.pods(machines[i], pod{name: "batch-" + name, labels: of("batch")}, pod{name: "web-" + name, labels: of("web")})
	}
	w.deleteMachines(machines...)
	for i, name := range []string{"1", "2"} {
		w.awaitSays(machines[i], v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonDraining,
			"complete by themselves: "+w.ns+"/batch-"+name, "order 1: "+w.ns+"/web-"+name)
	}

	w.changeRule("web", ordered(-1))
	w.awaitGone("web-1")
	w.awaitGone("web-2")
	w.awaitPod("batch-1", "still running", running)
	w.changeRule("batch", ordered(0))

	w.awaitNothingLeft(machines...)
}
