package api

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

const foreground = metav1.FinalizerDeleteDependents

// A Machine goes step by step. The garbage collector would begin with what it
// owns: it is not asked to, neither by the way of the deletion nor by its finalizer.
func TestAMachineIsNotDeletedInTheForeground(t *testing.T) {
	t.Parallel()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	_, user := server.User(t, rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"machines"},
		Verbs: []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"},
	})
	m := create(t, server.Client, machine("goes", bare))
	inForeground := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground), client.DryRunAll}
	const (
		deleted = "Machine goes cannot be deleted in the foreground: its infrastructure would be deleted at once, before its Node is drained " +
			"and its hooks are gone; delete it with the propagation policy Background, which is the default"
		marked = "the finalizer foregroundDeletion has the garbage collector delete the infrastructure of a Machine at once, " +
			"before its Node is drained and its hooks are gone; leave it out"
	)
	withFinalizer := object(t, machine("marked", bare))
	withFinalizer.SetFinalizers([]string{"example.com/kept", foreground})
	for attack, attempt := range map[string]struct {
		err  error
		want string
	}{
		"deletion":          {user.Delete(t.Context(), m, inForeground...), deleted},
		"deletion by admin": {server.Client.Delete(t.Context(), m, inForeground...), deleted},
		"deletion of all": {
			user.DeleteAllOf(t.Context(), m, client.InNamespace("default"), client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationForeground)),
			"cannot be deleted in the foreground",
		},
		"finalizer":              {patch(t, user, m, "metadata: {finalizers: ["+foreground+"]}"), marked},
		"finalizer among others": {patch(t, user, m, "metadata: {finalizers: [example.com/kept, "+foreground+"]}"), marked},
		"finalizer from birth":   {user.Create(t.Context(), withFinalizer, client.DryRunAll), marked},
	} {
		if !apierrors.IsForbidden(attempt.err) || !strings.Contains(attempt.err.Error(), attempt.want) {
			t.Errorf("%s: error %v, want a refusal that says %s", attack, attempt.err, attempt.want)
		}
	}
	for _, change := range []string{"metadata: {finalizers: [example.com/kept]}", "metadata: {labels: {a: b}}", "metadata: {finalizers: []}"} {
		if err := patch(t, user, m, change); err != nil {
			t.Errorf("%s is refused: %v", change, err)
		}
	}
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		if err := user.Delete(t.Context(), m, client.PropagationPolicy(policy), client.DryRunAll); err != nil {
			t.Errorf("deletion with the policy %s is refused: %v", policy, err)
		}
	}
}
