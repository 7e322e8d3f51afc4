package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations/status,verbs=patch

// WriteEvacuationStatus writes the whole status of an Evacuation under the
// version that it was read at, because the controller, evacuators and instigators
// all write to the object, and returns it as it is stored then.
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
