package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=clusters,verbs=patch

// act adds or removes the finalizer, and returns the stored Cluster.
func (r *reconciler) act(
	ctx context.Context, cluster *v1alpha1.Cluster, decision lifecycle.ClusterDecision,
) (stored *v1alpha1.Cluster, err error) {
	switch {
	case decision.AddFinalizer:
		if stored, err = kube.AddFinalizer(ctx, r.client, cluster, v1alpha1.ClusterFinalizer); err != nil {
			return nil, fmt.Errorf("add the finalizer: %w", err)
		}
		return stored, nil
	case decision.DropFinalizer:
		if stored, err = kube.RemoveFinalizer(ctx, r.client, cluster, v1alpha1.ClusterFinalizer); err != nil {
			return nil, fmt.Errorf("remove the finalizer: %w", err)
		}
		log.FromContext(ctx).Info("Removed the finalizer of a Cluster", "reason", "its Machines are gone")
		return stored, nil
	}
	return cluster, nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=clusters/status,verbs=patch

func (r *reconciler) report(ctx context.Context, cluster *v1alpha1.Cluster, decision lifecycle.ClusterDecision) error {
	if equality.Semantic.DeepEqual(cluster.Status, decision.Status) {
		return nil
	}
	changed := cluster.DeepCopy()
	changed.Status = decision.Status
	if err := r.client.Status().Patch(ctx, changed, kube.Change(cluster)); err != nil {
		return fmt.Errorf("write the status of the Cluster: %w", err)
	}
	return nil
}
