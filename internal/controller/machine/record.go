package machine

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=machines;machines/status,verbs=patch

// record writes what later actions rely on, and reports whether it did. Then everything is decided
// again.
func (r *reconciler) record(ctx context.Context, seen *observed, decision *lifecycle.Decision) (recorded bool, err error) {
	if decision.AddFinalizer {
		if _, err := kube.AddFinalizer(ctx, r.client, seen.Machine, v1alpha1.MachineFinalizer); err != nil {
			return false, fmt.Errorf("add the finalizer: %w", err)
		}
		return true, nil
	}
	if !decision.Record {
		return false, nil
	}
	if decision.ProviderID != "" && decision.ProviderID != seen.Machine.Spec.ProviderID {
		if err := r.setProviderID(ctx, seen, decision.ProviderID); err != nil {
			return false, err
		}
	}
	if err := r.writeStatus(ctx, seen, decision); err != nil {
		return false, err
	}
	return true, nil
}

func (r *reconciler) setProviderID(ctx context.Context, seen *observed, id string) error {
	changed := seen.Machine.DeepCopy()
	changed.Spec.ProviderID = id
	if err := r.client.Patch(ctx, changed, kube.Change(seen.Machine)); err != nil {
		return fmt.Errorf("set the provider ID: %w", err)
	}
	log.FromContext(ctx).Info("Set the provider ID", "providerID", id)
	seen.Machine = changed
	return nil
}
