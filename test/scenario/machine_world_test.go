package scenario

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
	"ebbtide.dev/ebbtide/test/cluster"
)

// hosts is the Cluster of Machines that name no other.
const hosts = "hosts"

// partHold keeps what a Machine is made of, or its Node, until the test lets go.
const partHold = "scenario.ebbtide.dev/part"

// newMachineWorld is a world with infrastructure for Machines and a Cluster.
func newMachineWorld(t *testing.T, changes ...func(*v1alpha1.Cluster)) *world {
	t.Helper()
	return newMachineWorldIn(t, cluster.Spec{}, changes...)
}

func newMachineWorldIn(t *testing.T, spec cluster.Spec, changes ...func(*v1alpha1.Cluster)) *world {
	t.Helper()
	w := newWorldIn(t, spec)
	w.cluster.StartProvider(t)
	w.clusterOf(hosts, changes...)
	return w
}

// clusterOf creates a Cluster that is this one.
func (w *world) clusterOf(name string, changes ...func(*v1alpha1.Cluster)) {
	w.t.Helper()
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	for _, change := range changes {
		change(c)
	}
	w.create(c)
}

// machine creates a Machine with its infrastructure and its bootstrap config,
// and returns the name of all these and of its node to come.
func (w *world) machine(short string, changes ...func(*v1alpha1.Machine)) string {
	w.t.Helper()
	name := w.name(short)
	w.createConfig(name)
	w.createInstance(name)
	w.machineOnly(name, changes...)
	return name
}

func (w *world) createConfig(name string) {
	w.t.Helper()
	config := &api.SandboxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	w.create(config)
	w.t.Cleanup(func() { w.erase(config) })
}

// createInstance creates infrastructure whose node goes with the scenario.
func (w *world) createInstance(name string) {
	w.t.Helper()
	w.cluster.ForgetNodes(w.t, name)
	instance := &api.SandboxMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec:       api.SandboxMachineSpec{NodeLabels: map[string]string{cluster.PoolLabel: w.cluster.Pool()}},
	}
	w.create(instance)
	w.t.Cleanup(func() { w.erase(instance) })
}

// machineOnly creates a Machine without what it is made of.
func (w *world) machineOnly(name string, changes ...func(*v1alpha1.Machine)) {
	w.t.Helper()
	ref := func(kind string) v1alpha1.ObjectReference {
		return v1alpha1.ObjectReference{APIVersion: api.SchemeGroupVersion.String(), Kind: kind, Name: name}
	}
	config := ref("SandboxConfig")
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec: v1alpha1.MachineSpec{
			ClusterName: hosts, InfrastructureRef: ref("SandboxMachine"),
			Bootstrap: v1alpha1.MachineBootstrap{ConfigRef: &config},
		},
	}
	for _, change := range changes {
		change(m)
	}
	w.create(m)
	w.t.Cleanup(func() { w.erase(m) })
}

// erase ends an object whatever holds it.
func (w *world) erase(object client.Object) {
	w.must("delete "+object.GetName(), client.IgnoreNotFound(w.remove(object)))
	w.must("erase "+object.GetName(), client.IgnoreNotFound(w.setFinalizers(object, "null")))
}

func (w *world) setFinalizers(object client.Object, finalizers string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, finalizers))
	return w.admitted(func() error { return w.client.Patch(w.ctx, object, patch) })
}

// running creates Machines and waits until all of them have their nodes and these
// take pods.
func (w *world) running(short ...string) []string {
	w.t.Helper()
	var names []string
	for _, s := range short {
		names = append(names, w.machine(s))
	}
	w.awaitRunning(names...)
	return names
}

// runningAs is running for one Machine that is somehow special.
func (w *world) runningAs(short string, changes ...func(*v1alpha1.Machine)) string {
	w.t.Helper()
	name := w.machine(short, changes...)
	w.awaitRunning(name)
	return name
}

func (w *world) awaitRunning(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.awaitPhase(name, v1alpha1.MachineRunning)
		w.awaitNode(name, "taking pods", func(n *corev1.Node) bool {
			return nodeReady(n) == corev1.ConditionTrue && len(n.Spec.Taints) == 0
		})
	}
}

func nodeReady(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

func (w *world) awaitMachine(name, what string, reached func(*v1alpha1.Machine) bool) {
	w.t.Helper()
	await(w, what, &v1alpha1.Machine{}, name, reached)
}

func (w *world) awaitPhase(name string, phase v1alpha1.MachinePhase) {
	w.t.Helper()
	w.awaitMachine(name, "phase "+string(phase), func(m *v1alpha1.Machine) bool { return m.Status.Phase == phase })
}

// awaitSays waits until a condition of a Machine has a reason, and a message with
// all of these words.
func (w *world) awaitSays(name, condition, status, reason string, words ...string) {
	w.t.Helper()
	what := fmt.Sprintf("%s=%s (%s) that says %q", condition, status, reason, words)
	w.awaitMachine(name, what, func(m *v1alpha1.Machine) bool {
		c := apimeta.FindStatusCondition(m.Status.Conditions, condition)
		missing := func(part string) bool { return !contains(c.Message, part) }
		return c != nil && string(c.Status) == status && c.Reason == reason && !slices.ContainsFunc(words, missing)
	})
}

// awaitStep waits until the deletion of a Machine is in a step, and says why.
func (w *world) awaitStep(name, step string, words ...string) {
	w.t.Helper()
	w.awaitSays(name, v1alpha1.ConditionDeleting, "True", step, words...)
}

// deleteMachines is what a person does with kubectl delete machine.
func (w *world) deleteMachines(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.must("delete "+name, w.remove(w.machineOf(name)))
	}
}

func (w *world) machineOf(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
}

// edit changes a Machine as people and hook implementers do.
func (w *world) edit(name string, change func(*v1alpha1.Machine)) {
	w.t.Helper()
	m := w.machineOf(name)
	w.change(m, name, func() { change(m) })
}

// awaitNothingLeft waits until Machines are gone, and sees that nothing of them is left.
func (w *world) awaitNothingLeft(names ...string) {
	w.t.Helper()
	for _, name := range names {
		for _, object := range []client.Object{
			&v1alpha1.Machine{}, &api.SandboxMachine{}, &api.SandboxConfig{}, &corev1.Node{},
		} {
			w.awaitAbsent(object, name)
		}
	}
}

// keep keeps an object when it is deleted until letGo.
func (w *world) keep(object client.Object, name string) {
	w.t.Helper()
	w.change(object, name, func() { object.SetFinalizers(append(object.GetFinalizers(), partHold)) })
}

func (w *world) letGo(object client.Object, name string) {
	w.t.Helper()
	w.change(object, name, func() {
		object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == partHold }))
	})
}

// instance and config name what a Machine is made of; see change.
func (w *world) instance() *api.SandboxMachine {
	return &api.SandboxMachine{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}
}

func hook(name, owner string) v1alpha1.LifecycleHook {
	return v1alpha1.LifecycleHook{Name: name, Owner: owner}
}

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
