package cluster_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers: [{name: web, image: web}]
`

func TestPodsOfADeploymentBecomeReadyOnTheNodesOfTheirTest(t *testing.T) {
	for _, name := range []string{"one", "other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster.Start(t, cluster.Spec{Nodes: 2})
			namespace := c.Namespace(t)
			c.Apply(t, namespace, web)
			waitAvailable(t, c, client.ObjectKey{Namespace: namespace, Name: "web"}, 6)

			pods := &corev1.PodList{}
			if err := c.Client.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			mine := map[string]bool{c.Nodes[0]: true, c.Nodes[1]: true}
			for _, pod := range pods.Items {
				if !mine[pod.Spec.NodeName] {
					t.Errorf("pod %s runs on %s, which is not one of %v", pod.Name, pod.Spec.NodeName, c.Nodes)
				}
			}
		})
	}
}

func waitAvailable(t *testing.T, c *cluster.Cluster, key client.ObjectKey, want int32) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	cluster.Eventually(t, fmt.Sprintf("%d available replicas of %s", want, key), 30*time.Second,
		func(ctx context.Context) (string, bool) {
			err := c.Client.Get(ctx, key, deployment)
			return fmt.Sprintf("%d available, error %v", deployment.Status.AvailableReplicas, err),
				deployment.Status.AvailableReplicas == want
		})
}

func TestAnAPIServerAloneServesOurKinds(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	if err := c.Client.List(t.Context(), &v1alpha1.NodeMaintenanceList{}); err != nil {
		t.Errorf("list NodeMaintenances: %v", err)
	}
	if err := c.Client.List(t.Context(), &v1alpha1.EvacuationList{}, client.InNamespace(c.Namespace(t))); err != nil {
		t.Errorf("list Evacuations: %v", err)
	}
}
