package api

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// certificateSecret is the one Secret that managers read.
const certificateSecret = "ebbtide-webhook-tls"

// A token of the manager reads no Secret but the certificate, and redirects no request of the
// API server: a key that signs certificates and a webhook over all objects would make it the
// token of an administrator.
func TestManagersTokenReadsOneSecretAndWritesNoWebhooks(t *testing.T) {
	t.Parallel()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	ns, manager := cluster.Account.Namespace, server.As(t, cluster.Account.Name)
	for _, name := range []string{certificateSecret, "another"} {
		create(t, server.Client, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: %s}, data: {ca.key: YQ==}}", ns, name))
	}
	hook := object(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: ebbtide}
webhooks:
- name: attacks.ebbtide.dev
  clientConfig: {service: {namespace: %s, name: ebbtide-webhook}}
  rules: [{apiGroups: [nowhere.example.com], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]
  sideEffects: None
  admissionReviewVersions: [v1]`, ns))
	keep(t, server.Client, hook)

	own := client.MatchingFields{metav1.ObjectNameField: certificateSecret}
	patience.Eventually(t, "the manager to read the certificate", func(ctx context.Context) (string, bool) {
		list := &corev1.SecretList{}
		err := manager.List(ctx, list, client.InNamespace(ns), own)
		return fmt.Sprint(len(list.Items), " Secrets, ", err), err == nil && len(list.Items) == 1
	})

	everything := hook.DeepCopy()
	webhooks, _, err := unstructured.NestedSlice(everything.Object, "webhooks")
	if err != nil {
		t.Fatal(err)
	}
	webhooks[0].(map[string]any)["rules"] = []any{map[string]any{
		"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "operations": []any{"CREATE"}, "resources": []any{"pods"},
	}}
	if err := unstructured.SetNestedSlice(everything.Object, webhooks, "webhooks"); err != nil {
		t.Fatal(err)
	}
	another := everything.DeepCopy()
	another.SetName("another")
	another.SetResourceVersion("")
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: certificateSecret}}
	for attempt, err := range map[string]error{
		"list the Secrets of its namespace": manager.List(t.Context(), &corev1.SecretList{}, client.InNamespace(ns)),
		"list the Secrets of all":           manager.List(t.Context(), &corev1.SecretList{}),
		"read another Secret":               manager.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "another"}, &corev1.Secret{}),
		"replace the certificate":           manager.Update(t.Context(), mine.DeepCopy(), client.DryRunAll),
		"create a Secret":                   manager.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "third"}}, client.DryRunAll),
		"update its webhooks":               manager.Update(t.Context(), everything.DeepCopy(), client.DryRunAll),
		"patch its webhooks":                patch(t, manager, hook.DeepCopy(), "webhooks: []"),
		"delete its webhooks":               manager.Delete(t.Context(), hook.DeepCopy(), client.DryRunAll),
		"create other webhooks":             manager.Create(t.Context(), another, client.DryRunAll),
		"read its webhooks":                 manager.Get(t.Context(), client.ObjectKey{Name: "ebbtide"}, &admissionregistrationv1.MutatingWebhookConfiguration{}),
		"list all webhooks":                 manager.List(t.Context(), &admissionregistrationv1.ValidatingWebhookConfigurationList{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("may %s: %v, want it forbidden", attempt, err)
		}
	}
}
