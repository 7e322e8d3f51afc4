package cluster_test

import (
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
			waitFor(t, c, deployment, "available", func() bool {
				return deployment.Status.AvailableReplicas == 6
			})

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

func TestFiftyNodesAreReadySoon(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{})
	begin := time.Now()
	c.AddNodes(t, 50)
	t.Logf("50 nodes were ready after %s", time.Since(begin).Round(time.Millisecond))
	nodes := &corev1.NodeList{}
	if err := c.Client.List(t.Context(), nodes, client.MatchingLabels{cluster.PoolLabel: c.Pool()}); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 50 {
		t.Errorf("the test has %d nodes, want 50", len(nodes.Items))
	}
}
