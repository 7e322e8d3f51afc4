package uninstall

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// rollout is one that a manager had begun which is gone.
func rollout(t *testing.T, c *cluster.Cluster, name string) *v1alpha1.NodeRollout {
	t.Helper()
	r := sample.Rollout(name, name)
	r.Finalizers = []string{v1alpha1.RolloutFinalizer}
	if err := c.Client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { forget(t, c, r) })
	return r
}

// forget removes an object with its finalizers, if it is there.
func forget(t *testing.T, c *cluster.Cluster, object client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_ = c.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if err := c.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

// A later manager would start further nodes of a rollout, so that none is left, nor its finalizer on a
// NodeMaintenance that is history.
func TestRolloutIsRefusedOrRemovedByAnUninstall(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	hook := uninstall.Hook{Client: c.Client, Namespace: namespaceOfManagers(t, c), Mode: uninstall.Refuse, Timeout: time.Minute, Out: &bytes.Buffer{}}
	installDoor(t, c)
	r := rollout(t, c, "kernel")
	record := sample.Maintenance("kernel-node-7-1", "node-7")
	record.Finalizers, record.Spec.Stage = []string{v1alpha1.RolloutFinalizer}, v1alpha1.StageComplete
	if err := c.Client.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { forget(t, c, record) })
	record.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete, StartTimestamp: &metav1.Time{Time: time.Now()}}}
	if err := c.Client.Status().Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}

	if err := hook.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "NodeRollouts in progress (1): kernel") {
		t.Errorf("got %v, want it refused", err)
	}

	hook.Mode = uninstall.Complete
	if err := hook.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(r), r); !apierrors.IsNotFound(err) {
		t.Errorf("the rollout is still there: %v", err)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil || len(record.Finalizers) > 0 {
		t.Errorf("the record has finalizers %v, %v", record.Finalizers, err)
	}
}
