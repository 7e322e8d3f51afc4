package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// WriteMachineStatus writes the whole status of a Machine under the version that
// it was read at, because whoever implements a hook writes conditions of its own
// there, and returns the Machine as it is stored then.
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
