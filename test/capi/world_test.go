package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// hook is Ebbtide's.
const hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/ebbtide"

// world is what one story has for itself: a namespace with a Cluster, whose nodes are in the
// cluster that all stories share, or in one of their own.
type world struct {
	t       testing.TB
	ctx     context.Context
	c       *cluster.Cluster
	capi    *shipped
	manager *cluster.Manager
	ns      string
	// at is where the nodes are, and in app what runs on them.
	at  *cluster.Cluster
	app string
	// kubeconfig leads there another way than that of the test does; nil is the same.
	kubeconfig []byte
}

var (
	bridged = cluster.Spec{Bridges: "cluster-api"}
	alone   = cluster.Spec{NoManager: true}
)

// newWorld is a world with Ebbtide if the Spec has it.
func newWorld(t testing.TB, spec cluster.Spec) *world {
	t.Helper()
	c := cluster.Start(t, spec)
	w := &world{t: t, ctx: context.WithoutCancel(t.Context()), c: c, at: c, capi: startClusterAPI(t, c), ns: c.Namespace(t)}
	w.app = w.ns
	// Of several managers each story starts its own.
	if !spec.NoManager && !spec.Replicas {
		w.manager = c.StartManager(t)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of Cluster API's log:\n%s", w.capi.tail())
		}
	})
	return w
}

// newPool is a world with a pool under Ebbtide's hooks.
func newPool(t testing.TB, spec cluster.Spec, machines, replicas int, more ...string) *world {
	t.Helper()
	w := newWorld(t, spec)
	w.pool(machines, replicas, more...)
	return w
}

// pool creates a Cluster with so many Machines and waits until all have Ebbtide's hook. An
// application of so many replicas runs on their nodes, if any.
func (w *world) pool(machines, replicas int, more ...string) {
	w.t.Helper()
	w.cluster("prod", optedIn)
	w.deployment("workers", "prod", machines, more...)
	w.awaitHooks(machines)
	if replicas > 0 {
		w.application("web", replicas, "")
	}
}

// cluster creates a Cluster of Cluster API, with these labels.
func (w *world) cluster(name string, labels map[string]string) {
	w.t.Helper()
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name + "-kubeconfig", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": name}},
		Type:       "cluster.x-k8s.io/secret", Data: map[string][]byte{"value": w.kubeconfigOf()},
	})
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name + "-bootstrap"}, Data: map[string][]byte{"value": []byte("#!")},
	})
	w.c.Apply(w.t, w.ns, fmt.Sprintf(`
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: SandboxCluster
metadata: {name: %[1]s}
spec: {controlPlaneEndpoint: {host: 127.0.0.1, port: 6443}}
status: {initialization: {provisioned: true}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1
kind: SandboxControlPlane
metadata: {name: %[1]s}
status: {externalManagedControlPlane: true, initialization: {controlPlaneInitialized: true}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: SandboxHostTemplate
metadata: {name: %[1]s}
spec: {template: {spec: {nodeLabels: {%[2]s: %[3]s}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: %[1]s, labels: %[4]s}
spec:
  controlPlaneEndpoint: {host: 127.0.0.1, port: 6443}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: SandboxCluster, name: %[1]s}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: SandboxControlPlane, name: %[1]s}
`, name, cluster.PoolLabel, w.at.Pool(), inline(labels)))
}

func inline(labels map[string]string) string {
	var all []string
	for key, value := range labels {
		all = append(all, fmt.Sprintf("%s: %q", key, value))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// deployment creates a MachineDeployment and waits until all its Machines have nodes that
// take pods. More goes into the spec of its Machines.
func (w *world) deployment(name, of string, replicas int, more ...string) {
	w.t.Helper()
	w.declare(name, of, replicas, more...)
	w.t.Cleanup(func() { w.eraseMachines() })
	w.awaitRunning(replicas)
}

// declare creates a MachineDeployment.
func (w *world) declare(name, of string, replicas int, more ...string) {
	w.t.Helper()
	w.c.Apply(w.t, w.ns, fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: %[1]s}
spec:
  clusterName: %[2]s
  replicas: %[3]d
  selector: {matchLabels: {pool: %[1]s}}
  template:
    metadata: {labels: {pool: %[1]s}}
    spec:
      clusterName: %[2]s
      version: v1.37.1
      bootstrap: {dataSecretName: %[2]s-bootstrap}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: SandboxHostTemplate, name: %[2]s}
      %[4]s
`, name, of, replicas, strings.Join(more, "\n      ")))
}

// eraseMachines lets everything of a story go, whatever holds it.
func (w *world) eraseMachines() {
	ctx, cancel := context.WithTimeout(context.Background(), patience.Bound)
	defer cancel()
	_ = w.c.Client.DeleteAllOf(ctx, kindOf(deploymentKind), client.InNamespace(w.ns))
	for _, m := range w.machines() {
		if node := nodeOf(m); node != "" {
			w.at.ForgetNodes(w.t, node)
		}
		m.SetAnnotations(nil)
		m.SetFinalizers(nil)
		_ = w.c.Client.Update(ctx, m)
	}
	_ = w.c.Client.DeleteAllOf(ctx, kindOf(machineKind), client.InNamespace(w.ns))
}

// awaitRunning waits until this many Machines have nodes that take pods, and returns them.
func (w *world) awaitRunning(count int) []*unstructured.Unstructured {
	w.t.Helper()
	var running []*unstructured.Unstructured
	w.await(fmt.Sprintf("%d Machines with nodes", count), func() (string, bool) {
		running = nil
		var saw []string
		for _, m := range w.machines() {
			node := &corev1.Node{}
			err := w.at.Client.Get(w.ctx, client.ObjectKey{Name: nodeOf(m)}, node)
			saw = append(saw, fmt.Sprint(m.GetName(), " node ", nodeOf(m), " ", node.Spec.Taints, err, deleting(m)))
			if err == nil && nodeOf(m) != "" && len(node.Spec.Taints) == 0 && m.GetDeletionTimestamp() == nil {
				running = append(running, m)
			}
		}
		w.capi.provider.mu.Lock()
		defer w.capi.provider.mu.Unlock()
		return fmt.Sprint(strings.Join(saw, "\n"), w.capi.provider.errors), len(running) == count
	})
	return running
}

func (w *world) machines() (all []*unstructured.Unstructured) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(machineKind)
	w.must(w.c.Client.List(w.ctx, list, client.InNamespace(w.ns)))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

func nodeOf(machine *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(machine.Object, "status", "nodeRef", "name")
	return name
}

// deleting is what Cluster API says that it does with a Machine.
func deleting(machine *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(machine.Object, "status", "conditions")
	for _, one := range conditions {
		if c := one.(map[string]any); c["type"] == "Deleting" {
			return fmt.Sprint(c["reason"], ": ", c["message"])
		}
	}
	return ""
}

func hooked(machine *unstructured.Unstructured) bool {
	_, has := machine.GetAnnotations()[hook]
	return has
}

// awaitHooks waits until as many Machines have Ebbtide's hook.
func (w *world) awaitHooks(count int) {
	w.t.Helper()
	w.await(fmt.Sprintf("%d hooks", count), func() (string, bool) {
		n := 0
		for _, m := range w.machines() {
			if hooked(m) {
				n++
			}
		}
		return fmt.Sprint(n), n == count
	})
}

// awaitGone waits until a Machine and its node are gone.
func (w *world) awaitGone(machine *unstructured.Unstructured) {
	w.t.Helper()
	w.await("Machine "+machine.GetName()+" to be gone", func() (string, bool) {
		now := machine.DeepCopy()
		err := w.c.Client.Get(w.ctx, client.ObjectKeyFromObject(machine), now)
		if err == nil && now.GetUID() == machine.GetUID() {
			return deleting(now), false
		}
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	w.await("node "+nodeOf(machine)+" to be gone", func() (string, bool) {
		err := w.at.Client.Get(w.ctx, client.ObjectKey{Name: nodeOf(machine)}, &corev1.Node{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

// awaitEvent waits until Ebbtide has said this of a Machine.
func (w *world) awaitEvent(machine *unstructured.Unstructured, reason, words string) {
	w.t.Helper()
	w.await(fmt.Sprintf("event %s on %s that says %q", reason, machine.GetName(), words), func() (string, bool) {
		events := w.events(machine)
		return strings.Join(events, "\n"), slices.ContainsFunc(events, func(e string) bool {
			return strings.HasPrefix(e, reason+": ") && strings.Contains(e, words)
		})
	})
}

func (w *world) events(machine *unstructured.Unstructured) (all []string) {
	list := &eventsv1.EventList{}
	w.must(w.c.Client.List(w.ctx, list, client.InNamespace(w.ns)))
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.UID == machine.GetUID() {
			all = append(all, e.Reason+": "+e.Note)
		}
	}
	return all
}

// annotate changes an annotation of an object; empty takes it away.
func (w *world) annotate(object client.Object, key, value string) {
	w.t.Helper()
	text := fmt.Sprintf("%q", value)
	if value == "" {
		text = "null"
	}
	w.must(w.c.Client.Patch(w.ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, key, text))))
}

func (w *world) label(object client.Object, key, value string) {
	w.t.Helper()
	w.must(w.c.Client.Patch(w.ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value))))
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	w.must(w.c.Client.Create(w.ctx, object))
}

func (w *world) delete(object client.Object) {
	w.t.Helper()
	w.must(w.c.Client.Delete(w.ctx, object))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) await(what string, probe func() (saw string, ok bool)) {
	w.t.Helper()
	patience.Eventually(w.t, what, func(context.Context) (string, bool) { return probe() })
}

func kindOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

// named stands for an object of the story.
func (w *world) named(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	object := kindOf(kind)
	object.SetNamespace(w.ns)
	object.SetName(name)
	return object
}

// elsewhere has the nodes be in another cluster.
func (w *world) elsewhere(other *cluster.Cluster) {
	w.t.Helper()
	w.at, w.app = other, other.Namespace(w.t)
	w.capi.provider.lead(w.ns, other.Client)
}
