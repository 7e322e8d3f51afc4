package capi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
)

// bare is an API server with the kinds of Cluster API, whose part is the story's, and with
// a manager of Ebbtide. No pods run.
var bare = cluster.Spec{Bridges: "cluster-api", OnlyAPIServer: true, Replicas: true, Audit: true}

// bareWorld has one Cluster, prod, which has opted in.
func bareWorld(t *testing.T) (*world, cluster.Replica) {
	t.Helper()
	c := cluster.Start(t, bare)
	installKinds(t, c, moduleDir(t))
	w := &world{t: t, ctx: context.WithoutCancel(t.Context()), c: c, at: c, ns: c.Namespace(t)}
	w.app = w.ns
	replica := c.StartReplica(t)
	w.await("the manager to lead", func() (string, bool) { return replica.Tail(1), replica.Leads(t) })
	w.bareCluster(w.ns, optedIn)
	return w, replica
}

func (w *world) bareCluster(namespace string, labels map[string]string) *unstructured.Unstructured {
	w.t.Helper()
	return w.c.Apply(w.t, namespace, fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: prod, labels: %s}
spec:
  controlPlaneEndpoint: {host: 127.0.0.1, port: 6443}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: SandboxCluster, name: prod}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: SandboxControlPlane, name: prod}
`, inline(labels)))[0]
}

const machineHeld = "story.example.com/held"

// newMachine is a Machine of Cluster prod, of an infrastructure whose objects the bridge does not
// read.
func newMachine(namespace, name, providerID string) *unstructured.Unstructured {
	m := kindOf(machineKind)
	m.SetNamespace(namespace)
	m.SetName(name)
	m.SetFinalizers([]string{machineHeld})
	m.Object["spec"] = map[string]any{
		"clusterName": "prod", "bootstrap": map[string]any{"dataSecretName": "prod"}, "providerID": providerID,
		"infrastructureRef": map[string]any{"apiGroup": "hosts.example.com", "kind": "Host", "name": name},
	}
	return m
}

// waitsAtHooks has a Machine be deleted and wait for hooks, as Cluster API does it, by
// whoever may write Machines.
func (w *world) waitsAtHooks(as client.Client, m *unstructured.Unstructured, node string) {
	w.t.Helper()
	w.must(as.Status().Patch(w.ctx, m, mergePatch(fmt.Sprintf(`{"status":{"nodeRef":{"name":%q}}}`, node))))
	w.await("the hook on "+m.GetName(), func() (string, bool) { return "", hooked(w.now(m)) })
	w.must(as.Delete(w.ctx, m))
	w.must(as.Status().Patch(w.ctx, m, mergePatch(fmt.Sprintf(`{"status":{
		"deletion":{"waitForPreDrainHookStartTime":%[1]q},
		"conditions":[{"type":"Deleting","status":"True","reason":"WaitingForPreDrainHook","message":"waits","lastTransitionTime":%[1]q}]}}`,
		time.Now().UTC().Format(time.RFC3339)))))
}

// letGoOf ends a Machine as its controller does.
func (w *world) letGoOf(m *unstructured.Unstructured) {
	w.t.Helper()
	w.must(client.IgnoreNotFound(w.c.Client.Patch(w.ctx, m, mergePatch(`{"metadata":{"finalizers":null}}`))))
}

// bareNode makes a node that says that it is of a Machine.
func (w *world) bareNode(name, providerID, namespace, machine string) *corev1.Node {
	w.t.Helper()
	node := sandbox.NewNode(name, map[string]string{cluster.PoolLabel: w.c.Pool()})
	node.Spec.ProviderID = providerID
	node.Annotations["cluster.x-k8s.io/machine"] = machine
	node.Annotations["cluster.x-k8s.io/cluster-name"] = "prod"
	node.Annotations["cluster.x-k8s.io/cluster-namespace"] = namespace
	w.create(node)
	w.c.ForgetNodes(w.t, name)
	return node
}

func (w *world) isCordoned(node string) bool {
	w.t.Helper()
	n := &corev1.Node{}
	w.must(w.c.Client.Get(w.ctx, client.ObjectKey{Name: node}, n))
	return n.Spec.Unschedulable
}

// maintenances are all that there are, with their stage.
func (w *world) maintenances() (all []string) {
	w.t.Helper()
	list := &v1alpha1.NodeMaintenanceList{}
	w.must(w.c.Client.List(w.ctx, list))
	for i := range list.Items {
		all = append(all, list.Items[i].Name+" "+string(list.Items[i].Spec.Stage))
	}
	return all
}

// written are the writes of the manager so far, but for its leases, and for its reviews of its
// rights, which nobody stores.
func (w *world) written() (all []string) {
	w.t.Helper()
	file, err := os.Open(w.c.AuditLog)
	w.must(err)
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request struct {
			Verb, RequestURI string
			User             struct{ Username string }
		}
		w.must(json.Unmarshal(lines.Bytes(), &request))
		notWritten := strings.Contains(request.RequestURI, "/leases") || strings.Contains(request.RequestURI, "/selfsubject")
		if request.User.Username == cluster.Account.User() && !notWritten {
			all = append(all, request.Verb+" "+request.RequestURI)
		}
	}
	w.must(lines.Err())
	return all
}
