package cli

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// promote sets the stage of an existing maintenance, unless it has that stage already.
func (o *maintainOptions) promote(ctx context.Context) (*v1alpha1.NodeMaintenance, error) {
	m, err := o.maintenance(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	switch {
	case m.DeletionTimestamp != nil:
		return nil, fmt.Errorf("NodeMaintenance %s is being deleted. Create another one with\n  %s", m.Name, o.command("%s NODE", o.verb))
	case m.Spec.Stage == o.stage:
		o.warn(fmt.Sprintf("NodeMaintenance %s is already in stage %s", m.Name, o.stage))
		return m, nil
	case maintenance.Past(m, o.stage):
		return nil, fmt.Errorf("NodeMaintenance %s is in stage %s and cannot go back. Create another one with\n  %s", m.Name, m.Spec.Stage, o.command("%s NODE", o.verb))
	}
	return m, o.setStage(ctx, m, o.stage)
}

// maintenance reads a maintenance. If it does not exist, the error suggests similar names.
func (o *maintainOptions) maintenance(ctx context.Context, name string) (*v1alpha1.NodeMaintenance, error) {
	m := &v1alpha1.NodeMaintenance{}
	err := o.reached.Get(ctx, client.ObjectKey{Name: name}, m)
	m.SetGroupVersionKind(maintenanceKind)
	if !apierrors.IsNotFound(err) {
		return m, err
	}
	return nil, o.noMaintenance(ctx, o.reached, name)
}

// setStage patches the stage without a resource version, as stages only go forward.
func (o *maintainOptions) setStage(ctx context.Context, m *v1alpha1.NodeMaintenance, stage v1alpha1.NodeMaintenanceStage) error {
	if o.dryRun.Mode == dryRunClient {
		m.Spec.Stage = stage
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID}, "spec": map[string]any{"stage": stage}})
	if err != nil {
		return err
	}
	settled, stop := settle(ctx)
	defer stop()
	err = o.reached.Patch(settled, m, client.RawPatch(types.MergePatchType, patch), &client.PatchOptions{DryRun: o.dryRun.options(), FieldManager: fieldManager})
	m.SetGroupVersionKind(maintenanceKind)
	if isUncertain(err) {
		return final(fmt.Errorf("unknown whether NodeMaintenance %s is in stage %s: %w. Check with\n  %s", m.Name, stage, cause(err), o.kubectl("get nodemaintenance %s", m.Name)))
	}
	return err
}
