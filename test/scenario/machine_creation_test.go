package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func hook(name, owner string) v1alpha1.LifecycleHook {
	return v1alpha1.LifecycleHook{Name: name, Owner: owner}
}

// Story 4 of machine-deletion-hooks: whoever hands out addresses configures one
// before the instance is made. Until then nothing of it is touched.
func TestAPreCreateHookHoldsAMachineUntilItsAddressIsSet(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	name := w.machine("m", func(m *v1alpha1.Machine) {
		m.Spec.LifecycleHooks.PreCreate = []v1alpha1.LifecycleHook{hook("AssignAddress", "ipam.example.com")}
	})

	w.awaitPhase(name, v1alpha1.MachinePending)
	w.awaitSays(name, v1alpha1.ConditionCreatable, "False", v1alpha1.ReasonHookPresent,
		"Waiting for preCreate hooks: AssignAddress (owner ipam.example.com)")
	w.awaitEvent("m", "HeldByHooks")
	instance, config := w.instance(), w.config()
	w.get(instance, name)
	w.get(config, name)
	if owner := metav1.GetControllerOfNoCopy(instance); owner != nil || instance.Status.StartTime != nil {
		t.Errorf("the instance is touched while a hook holds it: owner %v, started %v", owner, instance.Status.StartTime)
	}
	if owner := metav1.GetControllerOfNoCopy(config); owner != nil {
		t.Errorf("the bootstrap config is owned by %v while a hook holds the Machine", owner)
	}

	w.change(instance, name, func() { instance.Spec.NodeLabels["scenario.ebbtide.dev/address"] = "192.0.2.7" })
	w.edit(name, func(m *v1alpha1.Machine) { m.Spec.LifecycleHooks.PreCreate = nil })

	w.awaitRunning(name)
	w.awaitSays(name, v1alpha1.ConditionCreatable, "True", v1alpha1.ReasonNoHooks)
}

// A Machine waits for each thing that it needs, in order, and says for which:
// bootstrap data, infrastructure, its Node. Two Nodes of one providerID are none.
func TestAMachineIsMadeStepByStep(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	name := w.name("m")
	stranger := w.strangeNode("n", "sandbox://"+w.ns+"/"+name)
	w.machineOnly(name)

	w.awaitPhase(name, v1alpha1.MachinePending)
	w.awaitSays(name, v1alpha1.ConditionBootstrapReady, "False", v1alpha1.ReasonNotFound,
		"SandboxConfig "+w.ns+"/"+name+" does not exist.")

	w.createConfig(name)
	w.awaitPhase(name, v1alpha1.MachineProvisioning)
	w.awaitSays(name, v1alpha1.ConditionBootstrapReady, "True", v1alpha1.ReasonReady)
	w.awaitSays(name, v1alpha1.ConditionInfrastructureReady, "False", v1alpha1.ReasonNotFound,
		"SandboxMachine "+w.ns+"/"+name+" does not exist.")

	w.createInstance(name)
	w.awaitPhase(name, v1alpha1.MachineProvisioned)
	w.awaitSays(name, v1alpha1.ConditionNodeReady, "Unknown", v1alpha1.ReasonAmbiguous,
		"2 Nodes have providerID sandbox://"+w.ns+"/"+name+": "+name+", "+stranger.Name+". Delete those that do not belong to the Machine.")

	w.deleteNode(stranger.Name)
	w.awaitRunning(name)
	node, ref := &corev1.Node{}, w.machineNow(name).Status.NodeRef
	w.get(node, name)
	if ref == nil || ref.Name != name || ref.UID != node.UID {
		t.Errorf("nodeRef is %+v, want node %s of UID %s", ref, name, node.UID)
	}
	w.awaitSays(name, v1alpha1.ConditionNodeReady, "True", v1alpha1.ReasonReady)
}

// A Machine of a paused Cluster is neither made nor deleted, and says so.
func TestAPausedClusterStopsEverything(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	old := w.running("old")[0]
	w.pods(old, pod{name: "web"})
	w.pause(true)
	young := w.machine("young")
	w.deleteMachines(old)

	for _, name := range []string{old, young} {
		w.awaitSays(name, v1alpha1.ConditionPaused, "True", v1alpha1.ReasonPaused,
			"The Machine is not changed because spec.paused of Cluster "+w.ns+"/hosts is true.")
	}
	w.assertUnschedulable(old, false)
	w.awaitPod("web", "still running", running)
	config := w.config()
	w.get(config, young)
	if owner := metav1.GetControllerOfNoCopy(config); owner != nil {
		t.Errorf("the bootstrap config is owned by %v while the Cluster is paused", owner)
	}

	w.pause(false)
	w.awaitNothingLeft(old)
	w.awaitRunning(young)
}

func (w *world) pause(paused bool) {
	w.t.Helper()
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}
	w.change(c, hosts, func() { c.Spec.Paused = paused })
}

// A kind of infrastructure that the manager may not read is named with what to do,
// and holds up no other Machine.
func TestInfrastructureThatMayNotBeReadHoldsUpOnlyItsMachine(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	forbidden, unknown := w.name("forbidden"), w.name("unknown")
	made := func(apiVersion, kind string) func(*v1alpha1.Machine) {
		return func(m *v1alpha1.Machine) {
			m.Spec.Bootstrap = v1alpha1.MachineBootstrap{}
			m.Spec.InfrastructureRef.APIVersion, m.Spec.InfrastructureRef.Kind = apiVersion, kind
		}
	}
	w.machineOnly(forbidden, made("batch/v1", "CronJob"))
	w.machineOnly(unknown, made("infrastructure.example.com/v1", "Balloon"))

	w.awaitSays(forbidden, v1alpha1.ConditionInfrastructureReady, "Unknown", v1alpha1.ReasonUnknown,
		`cannot get resource "cronjobs"`, "Its provider has to ship a ClusterRole with the label ebbtide.dev/aggregate-to-manager=true")
	w.awaitSays(unknown, v1alpha1.ConditionInfrastructureReady, "Unknown", v1alpha1.ReasonUnknown,
		"kind Balloon of infrastructure.example.com/v1 is not served here. Install its provider. If there will be none, and nothing of the Machine is left, "+
			"it goes when its finalizer ebbtide.dev/machine is removed by hand")
	other := w.running("m")
	w.deleteMachines(append(other, forbidden, unknown)...)

	w.awaitNothingLeft(other...)
	for _, name := range []string{forbidden, unknown} {
		w.awaitStep(name, v1alpha1.ReasonDrainingNode, "Cannot determine the Node because the Machine has no providerID")
	}
}
