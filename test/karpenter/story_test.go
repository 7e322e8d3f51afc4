package karpenter

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

const (
	nodeClass = `{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: kwok}}`
	// nodePool has every node removed that has been empty for a second.
	nodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool}
spec:
  template:
    metadata: {labels: {team: shop}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: kwok}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
      expireAfter: Never
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1s, budgets: [{nodes: "100%"}]}`
	application = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {team: shop}
      containers: [{name: web, image: registry.example.com/web:1.0}]`
)

// Karpenter makes a node for an application. The node is drained: Karpenter makes another one, and
// would remove the first one, which is empty, but says that it may not. When the maintenance says
// that the node is to go, Karpenter removes it.
func TestLongKarpenterLeavesAnEmptiedNodeAloneUntilItIsToGo(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{Bridges: "karpenter"})
	c.StartManager(t)
	startKarpenter(t, c)
	for _, text := range []string{nodeClass, nodePool, application} {
		create(t, c, text)
	}
	first := nodeOf(t, c, "")
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "kernel"}, Spec: v1alpha1.NodeMaintenanceSpec{
		Stage: v1alpha1.StageDrain,
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{first}}},
		}}},
	}}
	if err := c.Client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	nodeOf(t, c, first)
	patience.Eventually(t, "Karpenter to say that it may not disrupt the emptied node", func(ctx context.Context) (string, bool) {
		var events corev1.EventList
		if err := c.Client.List(ctx, &events); err != nil {
			return err.Error(), false
		}
		var said []string
		for _, e := range events.Items {
			if e.InvolvedObject.Name == first && e.Reason == "DisruptionBlocked" {
				said = append(said, e.Message)
			}
		}
		text := strings.Join(said, "\n")
		return text, strings.Contains(text, "karpenter.sh/do-not-disrupt")
	})
	var node corev1.Node
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: first}, &node); err != nil || node.DeletionTimestamp != nil {
		t.Fatalf("the emptied node is gone or goes: %v, %v", node.DeletionTimestamp, err)
	}
	before := m.DeepCopy()
	m.Annotations = map[string]string{v1alpha1.AllowScaleDownAnnotation: "true"}
	if err := c.Client.Patch(t.Context(), m, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "Karpenter to remove the node that is to go", func(ctx context.Context) (string, bool) {
		err := c.Client.Get(ctx, client.ObjectKey{Name: first}, &node)
		return fmt.Sprintf("%v %v %v", err, node.Annotations, node.Spec.Taints), apierrors.IsNotFound(err)
	})
}

// nodeOf is the node on which the application runs, once it is another one than this.
func nodeOf(t *testing.T, c *cluster.Cluster, but string) (name string) {
	t.Helper()
	patience.Eventually(t, "the application to run on a node of Karpenter's", func(ctx context.Context) (string, bool) {
		var pods corev1.PodList
		if err := c.Client.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels{"app": "web"}); err != nil {
			return err.Error(), false
		}
		var seen []string
		for _, pod := range pods.Items {
			seen = append(seen, fmt.Sprint(pod.Spec.NodeName, pod.Status.Phase, pod.Status.Conditions))
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && pod.Spec.NodeName != but {
				name = pod.Spec.NodeName
			}
		}
		return strings.Join(seen, "\n"), name != ""
	})
	return name
}
