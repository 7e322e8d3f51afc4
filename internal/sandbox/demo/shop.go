package demo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

//go:embed shop.yaml
var shop []byte

const (
	namespace = "shop"
	// shopPods counts the pods of the applications on three nodes.
	shopPods = 12 + 1 + 3 + 3 + nodes
	// openWithin bounds how long they take to become ready.
	openWithin = 90 * time.Second
)

// openShop creates the applications, waits until all pods are ready, and
// returns the node that runs the application with a single replica.
func openShop(ctx context.Context, c client.Client) (string, error) {
	if err := create(ctx, c, shop); err != nil {
		return "", err
	}
	return awaitOpen(ctx, c, shopPods, "reports")
}

// awaitOpen waits until all pods are ready and the budget of web allows that one
// leaves. It returns the node that runs an application.
func awaitOpen(ctx context.Context, c client.Client, want int, app string) (string, error) {
	var node string
	var lastErr error
	saw := ""
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, openWithin, true, func(ctx context.Context) (bool, error) {
		pods, budget := &corev1.PodList{}, &policyv1.PodDisruptionBudget{}
		lastErr = errors.Join(
			c.List(ctx, pods, client.InNamespace(namespace)),
			c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, budget),
		)
		ready := 0
		for i := range pods.Items {
			pod := &pods.Items[i]
			if podclass.Ready(pod) {
				ready++
			}
			if pod.Labels["app"] == app {
				node = pod.Spec.NodeName
			}
		}
		saw = fmt.Sprintf("%d of %d pods are ready, the budget allows %d", ready, want, budget.Status.DisruptionsAllowed)
		return lastErr == nil && ready == want && budget.Status.DisruptionsAllowed > 0, nil
	})
	if err != nil && ctx.Err() == nil {
		return "", fmt.Errorf("wait for the applications: %s: %w", saw, errors.Join(err, lastErr))
	}
	return node, err
}

func create(ctx context.Context, c client.Client, documents []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(documents), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read applications: %w", err)
		}
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}
