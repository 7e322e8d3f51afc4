package cli

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// promote has a maintenance that is there go on to the stage that the verb asks for. It is
// no error that it is there already.
func (o *maintainOptions) promote(ctx context.Context) (*v1alpha1.NodeMaintenance, error) {
	m, err := o.maintenance(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	switch {
	case m.DeletionTimestamp != nil:
		return nil, fmt.Errorf("NodeMaintenance %s is being deleted; create another one: %s", m.Name, o.command("%s NODE", o.verb))
	case m.Spec.Stage == o.stage:
		o.say(fmt.Sprintf("NodeMaintenance %s is in stage %s already", m.Name, o.stage))
		return m, nil
	case maintenance.Past(m, o.stage):
		return nil, fmt.Errorf("NodeMaintenance %s is in stage %s, and stages only go forward; create another one: %s", m.Name, m.Spec.Stage, o.command("%s NODE", o.verb))
	}
	return m, o.setStage(ctx, m, o.stage)
}

// maintenance reads a maintenance.
//
// Errors: there is none of this name; the error has names that are near.
func (o *maintainOptions) maintenance(ctx context.Context, name string) (*v1alpha1.NodeMaintenance, error) {
	m := &v1alpha1.NodeMaintenance{}
	err := o.reached.Get(ctx, client.ObjectKey{Name: name}, m)
	m.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("NodeMaintenance"))
	if !apierrors.IsNotFound(err) {
		return m, err
	}
	return nil, o.noMaintenance(ctx, o.reached, name)
}

func namesOf(objects []*metav1.PartialObjectMetadata) []string {
	names := make([]string, len(objects))
	for i := range objects {
		names[i] = objects[i].Name
	}
	return names
}

// setStage writes a stage into the object that was read, whatever else has been written
// since: a stage only goes forward.
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
	m.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("NodeMaintenance"))
	if uncertain(err) {
		return said{fmt.Errorf("whether NodeMaintenance %s is in stage %s is unknown: %w. Look with\n  %s", m.Name, stage, cause(err), o.kubectl("get nodemaintenance %s", m.Name))}
	}
	return err
}
