package cluster

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/patience"
)

// Mighty returns a client by the name of somebody who has every right that RBAC can give: what
// stops it is admission alone.
func (c *Cluster) Mighty(t testing.TB, name string) client.Client {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
	mighty, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatalf("make the client of %s: %v", name, err)
	}
	return mighty
}

// User returns the client of a user of this test, whose rights in the whole
// cluster are these rules. They hold already, and end with the test.
func (c *Cluster) User(t testing.TB, rules ...rbacv1.PolicyRule) (name string, user client.Client) {
	t.Helper()
	name = fmt.Sprintf("%s-user%d", c.prefix, c.created.next())
	// No kind has this name: whoever has this right has all others of the role.
	known := rbacv1.PolicyRule{APIGroups: []string{"sandbox.ebbtide.dev"}, Resources: []string{name}, Verbs: []string{"get"}}
	meta := metav1.ObjectMeta{Name: name}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: append(rules, known)},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		},
	} {
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("give rights to user %s: %v", name, err)
		}
		c.undo(t, func(ctx context.Context) {
			if err := c.remove(ctx, object); err != nil {
				t.Errorf("take rights from user %s: %v", name, err)
			}
		})
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	user, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatalf("make the client of user %s: %v", name, err)
	}
	patience.Eventually(t, "the rights of user "+name, func(ctx context.Context) (string, bool) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "sandbox.ebbtide.dev", Resource: name, Verb: "get"},
		}}
		err := user.Create(ctx, review)
		return fmt.Sprintf("%+v, %v", review.Status, err), err == nil && review.Status.Allowed
	})
	return name, user
}
