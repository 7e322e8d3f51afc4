package capi

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// installOpenShift installs OpenShift's Machines and MachineSets, from its module. Nobody
// acts on them but the story.
func installOpenShift(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	dir := downloaded(t, "openshift", "github.com/openshift/api")
	for _, name := range []string{"machines", "machinesets"} {
		file := "machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_" + name + "-Default.crd.yaml"
		for _, object := range documents(t, filepath.Join(dir, file)) {
			if err := c.Client.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
		}
	}
	patience.Eventually(t, "the kinds of OpenShift to be served", func(ctx context.Context) (string, bool) {
		for _, kind := range []string{"MachineList", "MachineSetList"} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(core.OpenShiftMachine.GroupVersion().WithKind(kind))
			if err := c.Client.List(ctx, list); err != nil {
				return err.Error(), false
			}
		}
		return "", true
	})
}

// A Machine of OpenShift gets its hook before it is deleted, its node is drained behind it,
// and the hook goes without the annotation with which hooks are not asked.
func TestLongAMachineOfOpenShift(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{Bridges: "openshift"})
	installOpenShift(t, c)
	w := &world{t: t, ctx: context.WithoutCancel(t.Context()), c: c, at: c, ns: c.Namespace(t), manager: c.StartManager(t)}
	w.app = w.ns
	name := w.ns + "-worker"
	node := sandbox.NewNode(name, map[string]string{cluster.PoolLabel: c.Pool()})
	node.Spec.ProviderID = "sandbox:///" + name
	node.Annotations["machine.openshift.io/machine"] = w.ns + "/worker"
	w.create(node)
	c.ForgetNodes(t, name)
	sets := c.Apply(t, w.ns, `
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata: {name: workers, labels: {ebbtide.dev/drain: "true"}}
spec: {replicas: 1}
`)
	w.must(c.Client.Get(w.ctx, client.ObjectKeyFromObject(sets[0]), sets[0]))
	machine := c.Apply(t, w.ns, `
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata:
  name: worker
  finalizers: [machine.machine.openshift.io/story]
  ownerReferences: [{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: workers, uid: `+string(sets[0].GetUID())+`, controller: true}]
spec: {providerID: "sandbox:///`+name+`"}
`)[0]
	now := func() *core.Machine {
		w.must(c.Client.Get(w.ctx, client.ObjectKeyFromObject(machine), machine))
		m := core.Read(machine)
		return &m
	}
	w.await("the hook", func() (string, bool) { return "", now().Hooked })
	w.application("web", 2, "")

	w.must(c.Client.Status().Patch(w.ctx, machine, mergePatch(`{"status":{"phase":"Deleting","nodeRef":{"name":"`+name+`"}}}`)))
	w.delete(machine)
	w.await("the hook to be taken off", func() (string, bool) { return strings.Join(w.events(machine), "\n"), !now().Hooked })
	if m := now(); m.Excluded != "" || len(w.podsOn(name)) > 0 {
		t.Errorf("excluded by %q, pods left: %d", m.Excluded, len(w.podsOn(name)))
	}
	w.delete(&corev1.Node{ObjectMeta: node.ObjectMeta})
	w.awaitNoMaintenance("worker")
	w.must(c.Client.Patch(w.ctx, machine, mergePatch(`{"metadata":{"finalizers":null}}`)))
}
