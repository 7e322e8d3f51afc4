package webhook

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// A user who may delete nodes, and machines of some kinds or namespaces, has no machine deleted by a
// rollout: any of all kinds could own a node.
func TestReplacementNeedsTheRightToDeleteAllMachines(t *testing.T) {
	t.Parallel()
	c := newAPI(t)
	nodes := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}}
	machines := rbacv1.PolicyRule{
		APIGroups: []string{"ebbtide.dev", "cluster.x-k8s.io", "machine.openshift.io"}, Resources: []string{"machines"}, Verbs: []string{"delete"},
	}
	claims := rbacv1.PolicyRule{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodeclaims"}, Verbs: []string{"delete"}}
	replaces := func(name string) *v1alpha1.NodeRollout {
		r := sample.Rollout(c.Pool()+name, "no-such-node")
		r.Spec.After = v1alpha1.AfterReplace
		return r
	}
	refusal := func(user, resource string) string {
		return fmt.Sprintf("user %q may not delete %s in all namespaces, which spec.after Replace requires", user, resource)
	}

	name, user := c.User(t, rollsOut, nodes)
	wantRefusedBy(t, rolloutWebhook, user.Create(t.Context(), replaces("-none")), refusal(name, "machines.ebbtide.dev"))
	name, user = c.User(t, rollsOut, nodes, machines)
	wantRefusedBy(t, rolloutWebhook, user.Create(t.Context(), replaces("-some")), refusal(name, "nodeclaims.karpenter.sh"))

	// What has begun harmless does not become a replacement.
	r := sample.Rollout(c.Pool()+"-later", "no-such-node")
	must(t, user.Create(t.Context(), r))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(c.Client.Delete(context.WithoutCancel(t.Context()), r))) })
	changed := r.DeepCopy()
	changed.Spec.After = v1alpha1.AfterReplace
	wantRefusedBy(t, rolloutWebhook, user.Update(t.Context(), changed), refusal(name, "nodeclaims.karpenter.sh"))
	must(t, c.Client.Update(t.Context(), changed))
	changed.Spec.SoakSeconds = 60
	wantRefusedBy(t, rolloutWebhook, user.Update(t.Context(), changed), refusal(name, "nodeclaims.karpenter.sh"))
	changed.Spec.State = v1alpha1.RolloutAborted
	must(t, user.Update(t.Context(), changed))

	_, user = c.User(t, rollsOut, nodes, machines, claims)
	must(t, user.Create(t.Context(), replaces("-all"), client.DryRunAll))
}
