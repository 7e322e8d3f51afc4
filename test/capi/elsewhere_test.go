package capi

import (
	"bytes"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/cli"
	"ebbtide.dev/ebbtide/test/cluster"
)

// bindKubeconfigs lets Ebbtide read the kubeconfigs of the namespace.
func (w *world) bindKubeconfigs() {
	w.t.Helper()
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ebbtide-kubeconfigs"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ebbtide-kubeconfigs"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.Account.Namespace, Name: cluster.Account.Name}},
	})
}

// The nodes are in another cluster, in which there is no Ebbtide: while that cannot be
// reached the hook stays, and says why; then the node is drained there.
func TestLongANodeOfAnotherClusterIsDrainedThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bridged)
	w.elsewhere(cluster.Start(t, cluster.Spec{Workload: true}))
	w.pool(2, 4)
	victim := w.machines()[0]
	node := nodeOf(victim)
	pods := len(w.podsOn(node))

	w.delete(victim)
	w.awaitEvent(victim, v1alpha1.EventBridgeWaiting, "bind the ClusterRole ebbtide-kubeconfigs")
	if now := len(w.podsOn(node)); now != pods || pods == 0 || !hooked(w.now(victim)) {
		t.Errorf("%d of %d pods are left on the node, and the hook is there: %v", now, pods, hooked(w.now(victim)))
	}
	w.bindKubeconfigs()
	w.awaitEvent(victim, v1alpha1.EventBridgeDone, node+" is drained; the hook is removed")
	w.awaitGone(victim)
	w.awaitApplication("web", 4)
}

// The manager is gone for good, and a person lets the Machines go without it.
func TestLongAMachineIsLetGoWithoutTheManager(t *testing.T) {
	t.Parallel()
	w := newPool(t, cluster.Spec{Bridges: "cluster-api", NoMachines: true}, 2, 0)
	victim := w.machines()[0]
	w.manager.Kill(t)
	w.delete(victim)
	w.await("Cluster API to wait", func() (string, bool) {
		return deleting(w.now(victim)), strings.HasPrefix(deleting(w.now(victim)), "WaitingForPreDrainHook")
	})

	if out := w.plugin("bridge", "release", "-n", w.ns, victim.GetName()); out != "Machine "+w.ns+"/"+victim.GetName()+" (cluster.x-k8s.io) no longer waits for Ebbtide\n" {
		t.Errorf("said: %s", out)
	}
	w.awaitGone(victim)
	w.plugin("bridge", "release", "--all")
	w.awaitHooks(0)
	if out := w.plugin("bridge", "release", "--all"); out != "No Machine has Ebbtide's hook\n" {
		t.Errorf("said: %s", out)
	}
}

// plugin is what a person types.
func (w *world) plugin(args ...string) string {
	w.t.Helper()
	var out, errors bytes.Buffer
	code := cli.Run(w.ctx, append(args, "--kubeconfig", w.c.Kubeconfig), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errors})
	if code != 0 {
		w.t.Errorf("%v: exit code %d, %s", args, code, errors.String())
	}
	return out.String()
}
