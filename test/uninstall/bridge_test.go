package uninstall

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// Machines of other controllers that would wait for ever are a reason not to uninstall, in
// both modes, and release lets them go.
func TestForeignMachinesThatWouldNeverGo(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installDoor(t, c)
	hooked := bridgedMachines(t, c)
	for _, mode := range []uninstall.Mode{uninstall.Refuse, uninstall.Complete} {
		err := uninstall.Hook{Client: c.Client, Namespace: namespaceOfManagers(t, c), Mode: mode, Timeout: time.Minute, Out: &bytes.Buffer{}}.Run(t.Context())
		want := fmt.Sprintf("Ebbtide is in use, and uninstalling it would leave behind:\nMachines of other controllers whose deletion waits for Ebbtide (2): Machine of Cluster API %s, Machine of OpenShift %s\n"+
			"  disable it: kubectl label cluster.cluster.x-k8s.io NAME -n NAMESPACE ebbtide.dev/drain-", hooked[0], hooked[1])
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", mode, err, want)
		}
		assertOpen(t, c, cluster.Account.Namespace)
	}

	refuseTheBlind(t, c)
	out := &bytes.Buffer{}
	release := uninstall.Releaser{Client: c.Client, Now: time.Now, Out: out, Again: "release"}
	if err := release.Run(t.Context()); err != nil || len(stillHooked(t, c)) != 2 {
		t.Errorf("without --yes: %v, and %v have hooks", err, stillHooked(t, c))
	}
	for _, words := range []string{
		"Machine of Cluster API (1):\n  " + hooked[0] + ": remove the pre-drain hook of Ebbtide\n",
		"Machine of OpenShift (1):\n  " + hooked[1] + ": remove the pre-drain hook of Ebbtide",
	} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("it does not say %q:\n%s", words, out)
		}
	}
	release.Yes = true
	if err := release.Run(t.Context()); err != nil || len(stillHooked(t, c)) != 0 {
		t.Errorf("%v, and %v have hooks:\n%s", err, stillHooked(t, c), out)
	}
	if err := (uninstall.Hook{Client: c.Client, Namespace: cluster.Account.Namespace, Mode: uninstall.Refuse, Timeout: time.Minute, Out: out}).Run(t.Context()); err != nil {
		t.Errorf("after release: %v", err)
	}
}

// refuseTheBlind has release called by who may not look at Machines, who is told so: some
// may wait.
func refuseTheBlind(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	_, user := c.User(t, rbacv1.PolicyRule{
		APIGroups: []string{"", "apps", "policy", "ebbtide.dev", "admissionregistration.k8s.io", "coordination.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"},
	})
	out := &bytes.Buffer{}
	err := uninstall.Releaser{Client: user, Now: time.Now, Out: out, Again: "release"}.Run(t.Context())
	if err == nil || !strings.Contains(out.String(), "Could not read every Machine of Cluster API: list machines.cluster.x-k8s.io: ") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// bridgedMachines has Machines of two controllers be there until the test ends, of each one
// with our hook and one with hooks of others only. It returns the names of those with ours.
func bridgedMachines(t *testing.T, c *cluster.Cluster) (hooked []string) {
	t.Helper()
	ns := c.Namespace(t)
	for _, one := range bridgedKinds {
		c.Apply(t, "", fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.%[1]s}
spec:
  group: %[1]s
  names: {kind: Machine, listKind: MachineList, plural: machines, singular: machine}
  scope: Namespaced
  versions:
  - {name: %[2]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, one.Group, one.Version))
		patience.Eventually(t, "Machines of "+one.Group+" to be served", func(ctx context.Context) (string, bool) {
			err := c.Client.List(ctx, listOf(one), client.InNamespace(ns))
			return fmt.Sprint(err), err == nil
		})
	}
	c.Apply(t, ns, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: worker-1, annotations: {pre-drain.delete.hook.machine.cluster.x-k8s.io/ebbtide: ebbtide.dev, pre-drain.delete.hook.machine.cluster.x-k8s.io/backup: db-team}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: other-1, annotations: {pre-drain.delete.hook.machine.cluster.x-k8s.io/backup: db-team}}
---
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {name: worker-2}
spec: {lifecycleHooks: {preDrain: [{name: etcd, owner: etcd}, {name: ebbtide, owner: ebbtide.dev}]}}
---
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {name: other-2}
spec: {lifecycleHooks: {preDrain: [{name: ebbtide, owner: somebody}]}}
`)
	return []string{ns + "/worker-1", ns + "/worker-2"}
}

var bridgedKinds = []schema.GroupVersionKind{
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineList"}, {Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineList"},
}

func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	return list
}

// stillHooked are the Machines that wait for Ebbtide; hooks of others have to be there.
func stillHooked(t *testing.T, c *cluster.Cluster) (names []string) {
	t.Helper()
	others := 0
	for _, kind := range bridgedKinds {
		list := listOf(kind)
		if err := c.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			text := fmt.Sprint(list.Items[i].Object)
			if strings.Contains(text, "cluster.x-k8s.io/ebbtide:ebbtide.dev") || strings.Contains(text, "name:ebbtide owner:ebbtide.dev") {
				names = append(names, list.Items[i].GetName())
			}
			others += strings.Count(text, "backup:db-team") + strings.Count(text, "owner:etcd") + strings.Count(text, "owner:somebody")
		}
	}
	if others != 4 {
		t.Errorf("%d hooks of others are left, want 4", others)
	}
	return names
}
