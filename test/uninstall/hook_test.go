package uninstall

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// Where no manager completes anything the hook says so when its time is up, and leaves
// everybody free to begin again.
func TestMaintenanceWithoutConditionIsNotCompleted(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	hook := uninstall.Hook{Client: c.Client, Namespace: namespaceOfManagers(t, c), Mode: uninstall.Complete, Timeout: 8 * time.Second, Out: &bytes.Buffer{}}
	installDoor(t, c)
	m := draining(t, c, "stuck")

	err := hook.Run(t.Context())

	const want = "timed out after 8s; still in progress (1): NodeMaintenance stuck. If no manager is running or can write, " +
		"run kubectl ebbtide release --yes, and then uninstall without hooks"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Spec.Stage != v1alpha1.StageComplete || len(m.Finalizers) != 1 {
		t.Errorf("it is in stage %s with finalizers %v, %v", m.Spec.Stage, m.Finalizers, err)
	}
	assertOpen(t, c, hook.Namespace)

	hook.Mode = uninstall.Refuse
	if err := hook.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "NodeMaintenances in progress (1): stuck (Complete)") {
		t.Errorf("got %v, want it refused", err)
	}
	assertOpen(t, c, hook.Namespace)
}

// draining is a maintenance that a manager had begun which is gone.
func draining(t *testing.T, c *cluster.Cluster, name string) *v1alpha1.NodeMaintenance {
	t.Helper()
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.MaintenanceCompletionFinalizer}}}
	m.Spec.Stage = v1alpha1.StageDrain
	m.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}},
	}}
	if err := c.Client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = c.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		if err := c.Client.Delete(ctx, m); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return m
}

// installDoor installs the policy of the chart that lets nobody begin anything.
func installDoor(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, object := range cluster.Chart(t) {
		if object.GetName() == "ebbtide-uninstall" && strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy") {
			if err := c.Client.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Client.Delete(context.WithoutCancel(t.Context()), object) })
		}
	}
}

func namespaceOfManagers(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Account.Namespace}}
	if err := c.Client.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return ns.Name
}

func assertOpen(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "ebbtide-uninstall"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("nothing can be begun any more: %v", err)
	}
}

// Our webhooks that nobody answers refuse what has to be written. The hook says so; release
// removes them and then goes on.
func TestLongRequestWithoutResponder(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	ns := namespaceOfManagers(t, c)
	m := draining(t, c, "guarded")
	c.WebhookPort(t) // Nobody listens there.
	hook := uninstall.Hook{Client: c.Client, Namespace: ns, Mode: uninstall.Complete, Timeout: time.Minute, Out: &bytes.Buffer{}}
	patience.Eventually(t, "webhooks to be called", func(context.Context) (string, bool) {
		err := c.Client.Create(t.Context(), m.DeepCopy(), client.DryRunAll)
		return "", err != nil && strings.Contains(err.Error(), "failed calling webhook")
	})

	err := hook.Run(t.Context())

	const want = "no manager is running to release nodes: start one, or run kubectl ebbtide release --yes " +
		"and then uninstall without hooks. The API server reports: "
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	assertOpen(t, c, ns)

	out := &bytes.Buffer{}
	if err := (uninstall.Releaser{Client: c.Client, Now: time.Now, Yes: true, Out: out, Again: "release"}).Run(t.Context()); err != nil {
		t.Fatalf("release: %v\n%s", err, out)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Spec.Stage != v1alpha1.StageComplete || len(m.Finalizers) > 0 {
		t.Errorf("it is in stage %s with finalizers %v, %v", m.Spec.Stage, m.Finalizers, err)
	}
	left := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "ebbtide"}, left); !apierrors.IsNotFound(err) {
		t.Errorf("our webhooks are still there: %v", err)
	}
}
