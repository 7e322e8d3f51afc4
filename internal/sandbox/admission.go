package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// callLocally has the webhooks of a configuration called at a port of localhost.
func callLocally(object *unstructured.Unstructured, port int) error {
	webhooks, found, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil || !found {
		return err
	}
	for i := range webhooks {
		webhook, ok := webhooks[i].(map[string]any)
		if !ok {
			return fmt.Errorf("webhook %d is no object", i)
		}
		path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		webhook["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://localhost:%d%s", port, path)}
	}
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}

// waitAdmission waits until the API server can call our webhooks. It hears of
// their certificate a moment after the manager has published it.
func (c *Cluster) waitAdmission(ctx context.Context) error {
	probe := &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "sandbox-probe-"},
		Spec: v1alpha1.NodeMaintenanceSpec{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"no-node"}},
			}},
		}}},
	}
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, startWithin, true, func(ctx context.Context) (bool, error) {
		lastErr = c.Client.Create(ctx, probe.DeepCopy(), client.DryRunAll)
		return !NotCalled(lastErr), nil
	})
	if err != nil || lastErr != nil {
		return fmt.Errorf("webhooks are not called: %w", errors.Join(lastErr, err))
	}
	return nil
}

// NotCalled returns true if a request was refused because a webhook that must
// agree to it could not be called, as while the manager is down.
func NotCalled(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed calling webhook")
}
