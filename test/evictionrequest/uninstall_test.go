package evictionrequest

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
)

// Ebbtide is uninstalled while a maintenance has asked a pod by an EvictionRequest, and while
// it surges another one, in its turn, for somebody else: nothing of ours is left, both pods
// stay, and what somebody else asks stays asked. The account of the hook does it with the
// rights that the chart gives.
func TestLongTheHookEndsWhatIsAsked(t *testing.T) {
	spec := cluster.Spec{EvictionRequests: true, Nodes: 1, NoMachines: true}
	w, others := bareWorld(t, spec), bareWorld(t, spec)
	w.cluster.StartManagerWith(t, "--eviction-requests=controller", "--machines=false")
	hook := w.hook()
	served, letNew := others.serve(named)
	defer letNew()
	theirs := others.ask("example.com/upgrade", served)
	others.awaitDetached(served)
	pod := w.pod("db-0", "example.com/leader 20000")
	w.drain()
	e := w.awaitEviction("pod-1-db-0", said.Awaiting, "example.com/leader Active, "+evictor+" Inactive")

	if err := hook.Run(w.ctx); err != nil {
		t.Fatalf("%v\n%s", err, hook.Out)
	}

	w.awaitGone(own(pod))
	w.awaitGone(e)
	others.awaitBack(served)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(theirs), theirs))
	if pod.DeletionTimestamp != nil || theirs.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction || theirs.DeletionTimestamp != nil {
		t.Errorf("the pod terminates since %v, and what somebody else asks is %+v", pod.DeletionTimestamp, theirs)
	}
	if all := len(w.evacuations()) + len(others.evacuations()); all != 0 {
		t.Errorf("%d Evacuations are left", all)
	}
	// Helm removes the right to the Lease, and so the garbage collector removes the Lease.
	meta := metav1.ObjectMeta{Namespace: core.LeaseNamespace, Name: "ebbtide-eviction-requests"}
	w.must(w.client.Delete(w.ctx, &rbacv1.Role{ObjectMeta: meta}))
	w.awaitGone(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: core.LeaseNamespace, Name: core.Lease}})
}

// hook is the one of the chart that ends everything, under the account of its own, which has
// the rights of the chart. Others can begin again when the test ends.
func (w *world) hook() uninstall.Hook {
	w.t.Helper()
	role, err := os.ReadFile("../../charts/ebbtide/files/role-uninstall.yaml")
	w.must(err)
	const name = "ebbtide-uninstall"
	ns := cluster.Account.Namespace
	var all strings.Builder
	all.WriteString(strings.ReplaceAll(string(role), "namespace: release", "namespace: "+ns))
	for _, of := range []struct{ kind, namespace string }{{"ClusterRole", ""}, {"Role", ns}, {"Role", core.LeaseNamespace}} {
		fmt.Fprintf(&all, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %[1]sBinding\nmetadata: {name: %[2]s, namespace: %[3]q}\n"+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[1]s, name: %[2]s}\nsubjects: [{kind: ServiceAccount, name: %[2]s, namespace: %[4]s}]\n",
			of.kind, name, of.namespace, ns)
	}
	fmt.Fprintf(&all, "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s}\n", name)
	w.cluster.Apply(w.t, ns, all.String())
	w.t.Cleanup(func() {
		door := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, door)))
	})
	config, err := clientcmd.BuildConfigFromFlags("", w.cluster.ServiceAccountKubeconfig(w.t, ns, name))
	w.must(err)
	own, err := client.NewWithWatch(config, client.Options{Scheme: w.client.Scheme()})
	w.must(err)
	w.eventually("the rights of the hook", func() (bool, any) {
		lease := &coordinationv1.Lease{}
		err := client.IgnoreNotFound(own.Get(w.ctx, client.ObjectKey{Namespace: core.LeaseNamespace, Name: core.Lease}, lease))
		return err == nil, err
	})
	return uninstall.Hook{
		Client: own, Namespace: ns, ServiceAccount: cluster.Account.Name, Mode: uninstall.Complete, Timeout: 3 * time.Minute, Out: &bytes.Buffer{},
	}
}
