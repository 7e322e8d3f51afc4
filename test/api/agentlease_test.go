//go:build linux

package api

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent"
	"ebbtide.dev/ebbtide/internal/agent/host"
	"ebbtide.dev/ebbtide/test/cluster"
)

// withoutLease may not read the Lease of its kubelet.
func withoutLease(c client.WithWatch) client.WithWatch {
	refused := func(list client.ObjectList) error {
		if _, leases := list.(*coordinationv1.LeaseList); leases {
			return apierrors.NewForbidden(coordinationv1.Resource("leases"), "", nil)
		}
		return nil
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := refused(list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			if err := refused(list); err != nil {
				return nil, err
			}
			return c.Watch(ctx, list, opts...)
		},
	})
}

// Its manifest is aside and somebody has hidden its mirror pod by force. Nobody who does not
// know whether the kubelet lives calls it gone.
func TestAnAgentThatCannotReadTheLeaseOfItsKubeletCallsNothingGone(t *testing.T) {
	w := newHostStory(t)
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: proxy, namespace: default}\nspec: {containers: [{name: proxy, image: x}]}\n"
	if err := os.WriteFile(filepath.Join(w.dir, ".proxy.yaml.ebbtide-held"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	targets := `metadata: {annotations: {ebbtide.dev/drain-targets: '[{"podPriority":2147483647,"podType":"Static"}]'}}`
	if err := patch(t, w.server.Mighty(t, cluster.Account.User()), w.node(w.a), targets); err != nil {
		t.Fatal(err)
	}
	beat := host.Heartbeat{Client: w.admin, Namespace: corev1.NamespaceNodeLease, Name: w.a}
	if err := beat.Renew(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.a, UID: "any"}}); err != nil {
		t.Fatal(err)
	}
	w.client = withoutLease(w.user("ebbtide:agent:"+w.a, "ebbtide:agents"))
	retains := func(o *agent.ControlPlane) { o.Terminate = false }
	stop := w.run(retains)
	w.says("proxy", v1alpha1.StaticPodHolding, "its Lease in kube-node-lease is missing or unreadable")
	stop()
	w.client = nil
	stop = w.run(retains)
	w.says("proxy", v1alpha1.StaticPodHeld, "put aside")
	stop()
}
