package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// Beside the right to delete the nodes, the one to delete pods past their budgets
// is asked for, see charts/ebbtide/templates/policy-bypass-budgets.yaml.
func TestNobodyDeletesPastBudgetsWhoMayOnlyDrain(t *testing.T) {
	c := newAPI(t)
	node := newNodes(t, c, 1, nil)[0]
	m := sample.Maintenance(c.Pool(), node)
	m.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60, OnLockTimeout: v1alpha1.LockTimeoutDelete}
	bypasses := rbacv1.PolicyRule{
		APIGroups: maintains.APIGroups, Resources: maintains.Resources, Verbs: []string{v1alpha1.BypassBudgetsVerb},
	}
	name, drainer := c.User(t, maintains, deletes())
	patience.Eventually(t, "the policy to be obeyed", func(ctx context.Context) (string, bool) {
		err := drainer.Create(ctx, m.DeepCopy(), client.DryRunAll)
		return fmt.Sprint(err), apierrors.IsForbidden(err) && strings.Contains(err.Error(),
			fmt.Sprintf(`user %q does not have the verb "bypass-budgets" on nodemaintenances: choose Evict or Wait`, name))
	})
	_, bypasser := c.User(t, maintains, bypasses)
	wantRefused(t, bypasser.Create(t.Context(), m.DeepCopy(), client.DryRunAll), "may not delete node "+node)
	_, both := c.User(t, maintains, deletes(), bypasses)
	must(t, both.Create(t.Context(), m.DeepCopy(), client.DryRunAll))
}

// Two who drain a node have to agree on which pods stay there.
func TestAnotherMaintenanceOfTheSameNodesIsWarnedOf(t *testing.T) {
	c := newAPI(t)
	nodes := newNodes(t, c, 2, nil)
	newNodes(t, newAPI(t), 1, nil)
	first := sample.Maintenance(c.Pool()+"-first", nodes...)
	first.Spec.Stage = v1alpha1.StageDrain
	first.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}
	must(t, c.Client.Create(t.Context(), first))
	t.Cleanup(func() { must(t, c.Client.Delete(context.WithoutCancel(t.Context()), first)) })

	user, warnings := listening(t, c)
	second := sample.Maintenance(c.Pool()+"-second", nodes[1])
	second.Spec.Stage = v1alpha1.StageDrain
	want := "NodeMaintenance " + first.Name + " also drains node " + nodes[1] + " in place: pods that stay there for it leave now"
	patience.Eventually(t, "the warning", func(ctx context.Context) (string, bool) {
		must(t, user.Create(ctx, second.DeepCopy(), client.DryRunAll))
		got := strings.Join(warnings.take(), "\n")
		return got, got == want
	})
	second.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 600, LockTimeoutSeconds: 600, OnLockTimeout: v1alpha1.LockTimeoutDelete}
	must(t, user.Create(t.Context(), second, client.DryRunAll))
	got := warnings.take()
	for i, words := range []string{"spec.inPlace.expectedDowntimeSeconds is 600", "spec.inPlace.onLockTimeout is Delete", first.Name + " also drains node " + nodes[1] + " in place"} {
		if len(got) != 3 || !strings.Contains(got[i], words) {
			t.Errorf("warnings %q, want three of which one says %q", got, words)
		}
	}
}
