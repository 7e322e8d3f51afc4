package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

// As returns the client of an account in the namespace of the managers, that of the managers or
// of a hook, with all the rights that the chart gives it by default. The rights stay, and may
// take a moment.
func (c *Cluster) As(t testing.TB, name string) client.Client {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Account.Namespace}}
	if err := client.IgnoreAlreadyExists(c.Client.Create(t.Context(), namespace)); err != nil {
		t.Fatal(err)
	}
	for _, o := range rolesOf(t, name) {
		if err := client.IgnoreAlreadyExists(c.Client.Create(t.Context(), o)); err != nil {
			t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	account := sandbox.Account{Namespace: Account.Namespace, Name: name}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: account.User(), Groups: account.Groups()}
	as, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// rolesOf are the roles of the chart that are bound to an account, with their bindings.
func rolesOf(t testing.TB, account string) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := helm.Render(t.Context(), helm.Release{
		Namespace: Account.Namespace, Values: map[string]any{"serviceAccount": map[string]any{"name": Account.Name}},
	})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := charts.Objects(rendered)
	if err != nil {
		t.Fatal(err)
	}
	bound := map[string]bool{}
	for _, o := range objects {
		var binding rbacv1.RoleBinding // A ClusterRoleBinding has the same fields.
		if kind := o.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind == "ServiceAccount" && s.Name == account }) {
			bound[o.GetKind()+o.GetNamespace()+o.GetName()] = true
			bound[binding.RoleRef.Kind+o.GetNamespace()+binding.RoleRef.Name] = true
		}
	}
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !bound[o.GetKind()+o.GetNamespace()+o.GetName()] })
}
