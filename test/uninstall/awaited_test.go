package uninstall

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
)

// held is a node that a maintenance of its name has cordoned, and that an autoscaler is
// about to remove, or not.
func held(t *testing.T, c *cluster.Cluster, name string, removed bool) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["` + name + `"]}`,
	}}}
	node.Spec.Unschedulable = true
	if removed {
		node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.ToBeDeletedTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
	if err := c.Mighty(t, cluster.Account.User()).Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Client.Delete(context.WithoutCancel(t.Context()), node) })
	return node
}

// Whether an autoscaler ever removes a node, or says that it does not any more, nobody
// knows: what waits for that only is let go, and told of, before anybody's time is up. What
// managers are to give back is waited for all the same.
func TestAutoscalerIsNotWaitedFor(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	out := &bytes.Buffer{}
	hook := uninstall.Hook{Client: c.Client, Namespace: namespaceOfManagers(t, c), Mode: uninstall.Complete, Timeout: 8 * time.Second, Out: out}
	installDoor(t, c)
	removed, kept := held(t, c, "removed", true), held(t, c, "kept", false)
	draining(t, c, removed.Name)
	m := draining(t, c, kept.Name)

	err := hook.Run(t.Context())

	if err == nil || !strings.Contains(err.Error(), "still in progress (1): NodeMaintenance kept.") {
		t.Errorf("got %v, want it to wait for the managers that give node kept back", err)
	}
	const told = "NodeMaintenance removed is complete and only waits for the removal of its nodes; they are released without it. " +
		"The cluster-autoscaler drains node removed to remove it (taint ToBeDeletedByClusterAutoscaler). It takes the taint away if it gives up. " +
		"If the cluster-autoscaler does not run any more: kubectl taint node removed ToBeDeletedByClusterAutoscaler:NoSchedule-\n"
	if strings.Count(out.String(), told) != 1 {
		t.Errorf("it does not say once %q:\n%s", told, out)
	}

	// A manager gives the other node back.
	kept.Spec.Unschedulable, kept.Annotations, kept.ResourceVersion = false, nil, ""
	for _, err := range []error{
		c.Client.Update(t.Context(), kept), c.Client.Delete(t.Context(), m),
		c.Client.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	hook.Timeout = time.Minute
	if err := hook.Run(t.Context()); err != nil {
		t.Errorf("only an autoscaler is waited for, and it fails: %v\n%s", err, out)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(removed), removed); err != nil {
		t.Fatal(err)
	}
	if removed.Spec.Unschedulable || len(removed.Annotations) > 0 || removed.Spec.Taints[0].Key != v1alpha1.ToBeDeletedTaint {
		t.Errorf("the node is left unschedulable: %t, with annotations %v and taints %v; want only what the autoscaler has written", removed.Spec.Unschedulable, removed.Annotations, removed.Spec.Taints)
	}
}
