package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ebbtide.dev/ebbtide/charts/helm"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// bridgedMachine is a kind of Machine whose fields are whatever a test writes.
const bridgedMachine = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.%[1]s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %[1]s
  names: {kind: Machine, listKind: MachineList, plural: machines, singular: machine}
  scope: Namespaced
  versions:
  - {name: %[2]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`

// A bridge is not switched off over Machines that would wait for Ebbtide for ever: a
// manager without the right takes no hook off. It runs alone: other tests of the chart
// would be refused, too.
func TestABridgeIsNotSwitchedOffWhileMachinesWait(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	ns := c.Namespace(t)
	upgrade := func(t *testing.T, values, want string) {
		t.Helper()
		_, err := helm.Render(t.Context(), helm.Release{Namespace: "ocean", Cluster: lookup{c}, Values: parsed(t, values)})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with %s: %v, want %q", values, err, want)
		}
	}
	for _, o := range rendered(t, helm.Release{Namespace: "ocean", Values: parsed(t, "bridges: [cluster-api, openshift]")}) {
		if o.GetName() == "ebbtide-bridges" && o.GetKind() == "ClusterRole" {
			keep(t, c.Client, o)
		}
	}
	upgrade(t, "bridges: []", "")
	serveMachines(t, c, "cluster.x-k8s.io/v1beta2", "machine.openshift.io/v1beta1")
	upgrade(t, "bridges: []", "")

	c.Apply(t, ns, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: backed-up, annotations: {pre-drain.delete.hook.machine.cluster.x-k8s.io/backup: db-team, pre-drain.delete.hook.machine.cluster.x-k8s.io/ebbtide: somebody}}
---
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {name: others}
spec: {lifecycleHooks: {preDrain: [{name: ebbtide, owner: somebody}, {name: etcd, owner: ebbtide.dev}]}}`)
	upgrade(t, "bridges: []", "")

	c.Apply(t, ns, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: worker-1, annotations: {pre-drain.delete.hook.machine.cluster.x-k8s.io/ebbtide: ebbtide.dev}}`)
	upgrade(t, "bridges: [openshift, karpenter]", "Bridge cluster-api cannot be switched off while Machines have the hook of Ebbtide (1, such as "+ns+"/worker-1): "+
		"when they are deleted they would wait for ever, as nobody drains for them any more. Have nobody ask for it, and the manager takes the hooks off within a second: "+
		"kubectl label clusters.cluster.x-k8s.io,machines.cluster.x-k8s.io --all --all-namespaces ebbtide.dev/drain-. "+
		"If no manager runs, or they are paused: kubectl ebbtide bridge release --all. Then try again.")
	upgrade(t, "bridges: [cluster-api]", "")

	c.Apply(t, ns, `
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {name: worker-2}
spec: {lifecycleHooks: {preDrain: [{name: etcd, owner: etcd}, {name: ebbtide, owner: ebbtide.dev}]}}`)
	upgrade(t, "bridges: [cluster-api]", "Bridge openshift cannot be switched off while Machines have the hook of Ebbtide (1, such as "+ns+"/worker-2)")
}

// serveMachines has the API server serve kinds of Machines until the test ends.
func serveMachines(t *testing.T, c *cluster.Cluster, versions ...string) {
	t.Helper()
	for _, version := range versions {
		group, name, _ := strings.Cut(version, "/")
		c.Apply(t, "", fmt.Sprintf(bridgedMachine, group, name))
		patience.Eventually(t, "Machines of "+group+" to be served", func(ctx context.Context) (string, bool) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, "MachineList"))
			err := c.Client.List(ctx, list)
			return fmt.Sprint(err), err == nil
		})
	}
}
