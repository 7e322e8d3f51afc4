package evictionrequest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// The account of the manager has no rights on EvictionRequests, which are served. Nodes are
// drained all the same, and the missing rights are told. They are granted, and pods are asked
// by EvictionRequests. They are taken away in the middle, and the drain goes on without.
func TestLongADrainNeedsNoRightsOnEvictionRequests(t *testing.T) {
	t.Parallel()
	const role = "ebbtide-eviction-requests"
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Nodes: 1, NoMachines: true, Replicas: true, Alone: true, Lacks: role})
	replica := w.cluster.StartReplica(t)
	pod := w.pod("web-0", leader+" 20000")
	m := w.drain()
	w.awaitGone(pod)
	w.awaitDrained(m)
	w.awaitMissing("eviction-requests")
	w.awaitEvent(cluster.Account.Namespace, v1alpha1.EventRightsMissing,
		"Part eviction-requests of the manager does not run: its account may not create evictionrequests.lifecycle.k8s.io, ")
	w.assertTold("Ebbtide runs without eviction-requests because its service account lacks rights. Find them with kubectl logs -n operations ",
		"FAIL  the managers have the rights for all of their parts\n      reason: these parts do not run: [eviction-requests]\n")
	w.must(w.client.Delete(w.ctx, m))
	w.awaitGone(m)

	bindings := []client.Object{
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role}, Subjects: w.manager(),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: role}, Subjects: w.manager(),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		},
	}
	for _, binding := range bindings {
		w.must(w.client.Create(w.ctx, binding))
		t.Cleanup(func() { _ = w.client.Delete(w.ctx, binding) })
	}
	w.awaitState(replica, core.StateActive)
	w.awaitMissing("")
	pod = w.pod("web-1", leader+" 20000")
	m = w.drain()
	w.awaitEviction("pod-1-web-1", awaiting, leader+" Active, "+evictor+" Inactive")

	w.must(w.client.Delete(w.ctx, bindings[0]))
	w.awaitGone(pod)
	w.awaitDrained(m)
	w.awaitMissing("eviction-requests")
}

// assertTold asserts what kubectl ebbtide status and helm test say of missing rights.
func (w *world) assertTold(status, check string) {
	w.t.Helper()
	for want, run := range map[string][]string{
		status: {"kubectl-ebbtide", "status", "--namespace=" + cluster.Account.Namespace},
		check:  {"ebbtide", "check", "--namespace=" + cluster.Account.Namespace},
	} {
		command := exec.CommandContext(w.t.Context(), prebuilt.Path(w.t, run[0]), run[1:]...)
		command.Env = append(os.Environ(), "KUBECONFIG="+w.cluster.Kubeconfig)
		if said, _ := command.CombinedOutput(); !strings.Contains(string(said), want) {
			w.t.Errorf("%s says:\n%s\nwant: %s", run[0], said, want)
		}
	}
}

// manager is the account that the manager runs under.
func (w *world) manager() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.Account.Namespace, Name: cluster.Account.Name}}
}

// awaitMissing waits until the leader says which parts of it do not run.
func (w *world) awaitMissing(parts string) {
	w.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: kube.LeaderLease}}
	w.eventually("the leader to run without "+parts, func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(lease), lease))
		return lease.Labels[v1alpha1.MissingRightsLabel] == parts, lease.Labels
	})
}
