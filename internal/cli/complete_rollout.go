package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// isRollout reports whether an argument that is no node names a rollout: by its kind, or because there
// is no maintenance of this name.
func (o *completeOptions) isRollout(ctx context.Context, s subject) bool {
	if s.kind != kindAny {
		return s.kind == kindRollout
	}
	if _, err := metadataOf(ctx, o.reached, maintenanceKind, s.name); !apierrors.IsNotFound(err) {
		return false
	}
	_, err := metadataOf(ctx, o.reached, rolloutKind, s.name)
	return err == nil
}

// ofRollout returns the maintenances of a rollout, and remembers to abort it if it is not complete: it
// would start more nodes otherwise.
func (o *completeOptions) ofRollout(ctx context.Context, name string) ([]string, error) {
	r, err := o.rolloutOf(ctx, o.reached, name)
	if err != nil {
		return nil, err
	}
	if !isComplete(r) && r.Spec.State != v1alpha1.RolloutAborted && r.DeletionTimestamp == nil {
		o.aborted = append(o.aborted, r)
	}
	names, err := maintenancesOfRollout(ctx, o.reached, name)
	if err == nil && len(names) == 0 {
		o.warn(fmt.Sprintf("NodeRollout %s has no node under maintenance", name))
	}
	return names, err
}

// isComplete reports whether a rollout starts no more nodes.
func isComplete(r *v1alpha1.NodeRollout) bool {
	return r.Status.CompletedGeneration == r.Generation && r.Generation > 0
}

// abort aborts the rollouts that are not complete.
func (o *completeOptions) abort(ctx context.Context) error {
	for _, r := range o.aborted {
		if err := setRolloutState(ctx, o.reached, r, v1alpha1.RolloutAborted, &o.dryRun); err != nil {
			return err
		}
		o.warn(fmt.Sprintf("NodeRollout %s is aborted with %d of %s done%s", r.Name, r.Status.DoneCount, countNodes(int(r.Status.NodeCount)), o.suffix()))
	}
	return nil
}
