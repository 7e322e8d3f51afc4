package scenario

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
)

// checked has helm test say what it says, with one manager, without a leader, and without
// anybody. Nothing of it is left in any of these.
func checked(t *testing.T) {
	l := newLeaving(t)
	account := l.account("check")
	args := []string{"check", "--namespace=operations", "--timeout=15s"}
	const (
		validating = "the API server calls the validating webhooks: an Evacuation of a missing pod and a NodeRollout in an unknown time zone are rejected\n"
		mutating   = "the API server calls the mutating webhooks: a NodeMaintenance gets its drain plan\n"
		acting     = "the leader acts: a NodeMaintenance without nodes goes from Idle to Complete\n"
		rightful   = "the managers have the rights for all of their parts\n"
	)
	l.exec(account, "ebbtide", args...).assertSays(t, 0, "ok    "+validating, "ok    "+mutating, "ok    "+acting, "ok    "+rightful)
	l.assertNoCheckIsLeft()

	for _, manager := range l.managers {
		manager.Kill()
	}
	l.exec(account, "ebbtide", args...).assertSays(t, 1, "FAIL  "+validating, "reason: ", "failed calling webhook",
		"suggestion: check that managers are ready: kubectl get pods -n operations", "FAIL  "+mutating, "FAIL  "+acting, "ok    "+rightful, "error: 3 of 4 checks failed")
	l.takeLease()
	l.cluster.StartReplica(t)
	l.exec(account, "ebbtide", "check", "--namespace=operations", "--timeout=5s").assertSays(t, 1, "ok    "+validating, "ok    "+mutating, "FAIL  "+acting,
		"reason: no manager has observed it: timed out",
		"suggestion: check the leader: kubectl get lease -n operations ebbtide.dev", "error: 1 of 4 checks failed")
	l.assertNoCheckIsLeft()
}

func (l *leaving) assertNoCheckIsLeft() {
	l.t.Helper()
	l.awaitAbsent(&v1alpha1.NodeMaintenance{}, "ebbtide-check")
}

// takeLease has nobody lead any more, for as long as this test takes.
func (l *leaving) takeLease() {
	l.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: kube.LeaderLease}}
	l.must("get the lease", l.client.Get(l.ctx, client.ObjectKeyFromObject(lease), lease))
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("nobody"), new(int32(3600))
	lease.Spec.RenewTime = new(metav1.NowMicro())
	l.must("take the lease", l.client.Update(l.ctx, lease))
	l.t.Cleanup(func() { l.must("give the lease back", client.IgnoreNotFound(l.client.Delete(l.ctx, lease))) })
}
