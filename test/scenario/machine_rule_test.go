package scenario

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func skips() v1alpha1.MachineDrainRuleDrain {
	return v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorSkip}
}

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

// Story 1 of machine-drain-rules: storage leaves after all others, and what
// depends on them before.
func TestMachinesAreDrainedInOrder(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.running("m")[0]
	w.machineRule("portworx", ordered(100))
	w.machineRule("cache", ordered(-5))
	first := w.pods(m, pod{name: "cache-1", labels: of("cache"), held: true}, pod{name: "cache-2", labels: of("cache")})
	second := w.pods(m, pod{name: "web-1"}, pod{name: "web-2", held: true})
	third := w.pods(m, pod{name: "portworx-1", labels: of("portworx")})
	departures := w.watchDepartures(first, second, third)

	w.deleteMachines(m)

	w.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonDraining,
		"* Pods with deletionTimestamp that still exist: "+w.ns+"/cache-1",
		"* Pods that are evicted after those of order -5 are gone:\n  * order 0: "+w.ns+"/web-1, "+w.ns+"/web-2\n  * order 100: "+w.ns+"/portworx-1")
	w.release("cache-1")
	w.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonDraining,
		"* Pods with deletionTimestamp that still exist: "+w.ns+"/web-2",
		"* Pods that are evicted after those of order 0 are gone:\n  * order 100: "+w.ns+"/portworx-1")
	w.release("web-2")

	w.awaitNothingLeft(m)
	departures.assertInOrder()
}

// Stories 2 and 3 of machine-drain-rules: pods that would come back as often as
// they are evicted, and agents that watch until the end, run until the Node goes.
// So do those of the kubelet, without a rule.
func TestSkippedPodsRunUntilTheNodeGoes(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.runningAs("m", stays())
	w.machineRule("undrainable", skips())
	w.machineRule("monitoring", skips())
	w.pods(m, pod{name: "anywhere", labels: of("undrainable")}, pod{name: "agent", labels: of("monitoring")},
		pod{name: "static", mirror: true}, pod{name: "web"})

	w.deleteMachines(m)

	w.awaitEmptied(m)
	w.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "True", v1alpha1.ReasonDrained)
	w.awaitGone("web")
	for _, name := range []string{"anywhere", "agent", "static"} {
		w.awaitPod(name, "still running", running)
	}
	w.awaitEnd(m)
}

// Story 4 of machine-drain-rules: who owns a workload labels its pods, with no
// access to where Machines are. The labels stand above rules.
func TestOwnersOfWorkloadsSayHowTheyLeave(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.runningAs("m", stays())
	w.machineRule("shop", ordered(7))
	w.pods(m, pod{name: "agent", labels: map[string]string{"app": "shop", v1alpha1.DrainLabel: "skip"}},
		pod{name: "report", labels: map[string]string{"app": "shop", v1alpha1.DrainLabel: "WaitCompleted"}},
		pod{name: "web", labels: map[string]string{"app": "shop", v1alpha1.DrainLabel: "no-such-behavior"}})

	w.deleteMachines(m)

	w.awaitSays(m, v1alpha1.ConditionDrainingSucceeded, "False", v1alpha1.ReasonDraining,
		"* Pods that are waited for to complete by themselves: "+w.ns+"/report",
		"* Pods that are evicted after those of order 0 are gone:\n  * order 7: "+w.ns+"/web")
	w.awaitPod("web", "waiting for its turn", running)
	w.finish("report")
	w.awaitEmptied(m)
	w.awaitGone("web")
	w.awaitPod("agent", "still running", running)
	w.awaitEnd(m)
}

// Story 5 of machine-drain-rules: rules are for all Machines, for those of some
// Clusters, or for some Machines.
func TestRulesAreForSomeMachines(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	w.clusterOf("prod", func(c *v1alpha1.Cluster) { c.Labels = map[string]string{"env": "prod"} })
	plain := w.machine("plain", stays())
	gpu := w.machine("gpu", stays(), labelled("pool", "gpu"))
	prod := w.machine("prod", stays(), func(m *v1alpha1.Machine) { m.Spec.ClusterName = "prod" })
	w.awaitRunning(plain, gpu, prod)
	w.machineRule("web", skips(),
		v1alpha1.MachineDrainRuleMachineSelector{Selector: labelSelector("pool", "gpu")},
		v1alpha1.MachineDrainRuleMachineSelector{ClusterSelector: labelSelector("env", "prod")})
	w.machineRule("agent", skips())
	for _, m := range []string{plain, gpu, prod} {
		short := m[len(w.prefix):]
		w.pods(m, pod{name: "web-" + short, labels: of("web")}, pod{name: "agent-" + short, labels: of("agent")})
	}

	w.deleteMachines(plain, gpu, prod)

	for _, m := range []string{plain, gpu, prod} {
		w.awaitEmptied(m)
	}
	w.awaitGone("web-plain")
	for _, name := range []string{"web-gpu", "web-prod", "agent-plain", "agent-gpu", "agent-prod"} {
		w.awaitPod(name, "still running", running)
	}
	for _, m := range []string{plain, gpu, prod} {
		w.awaitEnd(m)
	}
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
