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
func TestDrainersMayNotDeletePastBudgets(t *testing.T) {
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
