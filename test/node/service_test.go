package node

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// pods are those of an application that are not being deleted, by the name of their node.
func pods(ctx context.Context, c *cluster.Cluster, namespace, app string) (map[string][]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": app})
	all := map[string][]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			all[pod.Spec.NodeName] = append(all[pod.Spec.NodeName], pod)
		}
	}
	return all, err
}

// waitAvailable waits until a Deployment has all its replicas.
func waitAvailable(t *testing.T, c *cluster.Cluster, namespace, name string) {
	t.Helper()
	patience.Eventually(t, "Deployment "+name, func(ctx context.Context) (string, bool) {
		d := &appsv1.Deployment{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)
		return fmt.Sprintf("%+v, %v", d.Status, err),
			err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == *d.Spec.Replicas
	})
}

// address is that of a Service.
func address(t *testing.T, c *cluster.Cluster, namespace, name string) string {
	t.Helper()
	service := &corev1.Service{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
		t.Fatal(err)
	}
	return "http://" + service.Spec.ClusterIP + "/"
}

// ask returns the name of the pod that has answered.
func ask(ctx context.Context, c *cluster.Cluster, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := c.HTTP().Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return strings.TrimSpace(string(body)), err
}
