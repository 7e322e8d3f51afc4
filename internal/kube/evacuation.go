package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations/status,verbs=patch

// WriteEvacuationStatus writes the whole status of an Evacuation under the version that was read,
// as controller, evacuators and instigators all write to it. It returns the stored object.
func WriteEvacuationStatus(
	ctx context.Context, c client.Client, e *v1alpha1.Evacuation, status v1alpha1.EvacuationStatus,
) (*v1alpha1.Evacuation, error) {
	changed := e.DeepCopy()
	changed.Status = status
	if err := c.Status().Patch(ctx, changed, Change(e)); err != nil {
		return e, fmt.Errorf("write the status of evacuation %s: %w", e.Name, err)
	}
	return changed, nil
}

// EvacuationPod extracts EvacuationPodField.
func EvacuationPod(object client.Object) []string {
	return by(object, func(e *v1alpha1.Evacuation) string { return string(e.Spec.PodRef.UID) })
}

// EvacuationNode extracts EvacuationNodeField, only for those of NodeMaintenances.
func EvacuationNode(object client.Object) []string {
	node := object.GetAnnotations()[v1alpha1.NodeAnnotation]
	if node == "" || !controllerutil.ContainsFinalizer(object, v1alpha1.NodeMaintenanceInstigator) {
		return nil
	}
	return []string{node}
}

// NoEviction is a name that no Eviction has.
const NoEviction = "-"

// EvacuationTurn extracts EvacuationTurnField, only for those of our responders.
func EvacuationTurn(object client.Object) []string {
	if !controllerutil.ContainsFinalizer(object, v1alpha1.LifecycleInstigator) {
		return nil
	}
	var turn struct {
		Name string `json:"name"`
	}
	text := object.GetAnnotations()[v1alpha1.EvictionTurnAnnotation]
	if json.Unmarshal([]byte(text), &turn) != nil || turn.Name == "" {
		return []string{NoEviction}
	}
	return []string{turn.Name}
}
