package uninstall

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/check"
	"ebbtide.dev/ebbtide/test/cluster"
)

// leftBehind is a NodeMaintenance of the name that checks have, over one node, which a manager
// holds that is gone.
func leftBehind(t *testing.T, c *cluster.Cluster, node string) *v1alpha1.NodeMaintenance {
	t.Helper()
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "ebbtide-check", Finalizers: []string{v1alpha1.MaintenanceCompletionFinalizer}}}
	m.Spec.Stage = v1alpha1.StageDrain
	m.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}},
	}}
	if err := c.Client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = c.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		_ = c.Client.Delete(ctx, m)
	})
	return m
}

// checked runs a check of a cluster in which no manager acts, and returns what it says.
func checked(t *testing.T, reached client.WithWatch) string {
	t.Helper()
	out := &bytes.Buffer{}
	if err := (check.Check{Client: reached, Namespace: "operations", Timeout: 8 * time.Second, Out: out}).Run(t.Context()); err == nil {
		t.Errorf("nothing has failed:\n%s", out)
	}
	return out.String()
}

// A NodeMaintenance by which somebody drains nodes is not removed, whatever its name.
func TestForeignNodeMaintenanceIsNotTouched(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	m := leftBehind(t, c, "node-7")

	said := checked(t, c.Client)

	const want = "one with this name exists and cannot be removed: it selects other nodes, so it was not created by a check\n" +
		"      suggestion: remove it: kubectl delete nodemaintenance ebbtide-check"
	if !strings.Contains(said, want) {
		t.Errorf("it does not say %q:\n%s", want, said)
	}
	after := &v1alpha1.NodeMaintenance{}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(m), after); err != nil || after.DeletionTimestamp != nil || len(after.Finalizers) != 1 {
		t.Errorf("it is %+v, %v", after.ObjectMeta, err)
	}
}

// One that an earlier check has left, held by a manager that is gone, is removed, also if the
// API server says in between that it cannot go on with a watch.
func TestLongANodeMaintenanceOfAnEarlierCheck(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	leftBehind(t, c, "ebbtide-check")
	broken := &breaking{WithWatch: c.Client}

	said := checked(t, broken)

	if !strings.Contains(said, "reason: no manager has observed it: timed out") {
		t.Errorf("it does not get as far as to ask for a NodeMaintenance:\n%s", said)
	}
	if strings.Contains(said, "ok    the API server asks the mutating webhooks") {
		t.Errorf("nobody has answered, and the webhooks are said to be asked:\n%s", said)
	}
	if broken.watches.Load() < 2 {
		t.Errorf("there were %d watches", broken.watches.Load())
	}
	err := c.Client.Get(t.Context(), client.ObjectKey{Name: "ebbtide-check"}, &v1alpha1.NodeMaintenance{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the check has left one: %v", err)
	}
}

// breaking is a client whose first watch is told that it asks for what is too old.
type breaking struct {
	client.WithWatch
	watches atomic.Int32
}

func (b *breaking) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if b.watches.Add(1) > 1 {
		return b.WithWatch.Watch(ctx, list, options...)
	}
	stream := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
	stream.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410})
	return stream, nil
}
