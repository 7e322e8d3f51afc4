package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// WriteMachineStatus writes the whole status of a Machine under the version that was read, because
// implementers of hooks write conditions, too. It returns the stored Machine.
func WriteMachineStatus(
	ctx context.Context, c client.Client, machine *v1alpha1.Machine, status v1alpha1.MachineStatus,
) (*v1alpha1.Machine, error) {
	changed := machine.DeepCopy()
	changed.Status = status
	if err := c.Status().Patch(ctx, changed, Change(machine)); err != nil {
		return machine, fmt.Errorf("write the status of machine %s: %w", machine.Name, err)
	}
	return changed, nil
}
