package webhook

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// clusterOf is a Cluster with its kubeconfig in a Secret; without one it is here.
func clusterOf(namespace, name, secret string) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if secret != "" {
		c.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: secret}
	}
	return c
}

func TestCreatorsOfClustersNeedTheRightsThere(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	here := func(who string) string {
		return fmt.Sprintf("user %q may not delete nodes, and the Machines of a Cluster without a kubeconfigSecretRef drain and delete nodes of this cluster: "+
			`ask for the verb "delete" on nodes, or name the Secret with the kubeconfig of another cluster`, who)
	}
	elsewhere := func(who, secret string) string {
		return fmt.Sprintf("user %q may not get Secret %s in namespace %s, and the Machines of the Cluster act with what is in it: "+
			`ask for the verb "get" on this Secret`, who, secret, namespace)
	}
	const refuses = "clusters.ebbtide.dev"

	t.Run("a user with neither right", func(t *testing.T) {
		who, user := c.User(t, fleets)
		wantDenied(t, user.Create(t.Context(), clusterOf(namespace, "a", "")), refuses, here(who))
		wantDenied(t, user.Create(t.Context(), clusterOf(namespace, "a", "east")), refuses, elsewhere(who, "east"))

		// What says nothing of where Machines act is for whoever may change Clusters.
		existing := clusterOf(namespace, "existing", "")
		must(t, c.Client.Create(t.Context(), existing))
		existing.Spec.Paused = true
		existing.Labels = map[string]string{"pool": "a"}
		must(t, user.Update(t.Context(), existing))
		existing.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "east"}
		wantDenied(t, user.Update(t.Context(), existing), refuses, elsewhere(who, "east"))
		must(t, user.Delete(t.Context(), existing))
	})
	t.Run("a user who may delete nodes", func(t *testing.T) {
		who, user := c.User(t, fleets, deletes())
		local := clusterOf(namespace, "b", "")
		must(t, user.Create(t.Context(), local))
		local.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "east"}
		wantDenied(t, user.Update(t.Context(), local), refuses, elsewhere(who, "east"))
		must(t, user.Delete(t.Context(), local))
	})
	t.Run("a user who may delete one node", func(t *testing.T) {
		who, user := c.User(t, fleets, deletes("one"))
		wantDenied(t, user.Create(t.Context(), clusterOf(namespace, "c", "")), refuses, here(who))
	})
	t.Run("a user who may read one Secret", func(t *testing.T) {
		who, user := c.User(t, fleets, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"east"}, Verbs: []string{"get"},
		})
		wantDenied(t, user.Create(t.Context(), clusterOf(namespace, "d", "west")), refuses, elsewhere(who, "west"))
		remote := clusterOf(namespace, "d", "east")
		must(t, user.Create(t.Context(), remote))
		remote.Spec.KubeconfigSecretRef = nil
		wantDenied(t, user.Update(t.Context(), remote), refuses, here(who))
		must(t, user.Delete(t.Context(), remote))
	})
}
